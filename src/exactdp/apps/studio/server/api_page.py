"""The API described for people: one HTML page made from the OpenAPI description, without scripts and without other hosts."""

from __future__ import annotations

import json
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --dim: #586070; --wash: #f4f6f9; }
@media (prefers-color-scheme: dark) { :root { --line: #3a404b; --dim: #a8b0bf; --wash: #1d2128; } }
body { font: 15px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; } h2 code { font-size: 1.05rem; font-weight: 600; }
a { color: LinkText; } pre { background: var(--wash); padding: .8rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
.dim { color: var(--dim); } nav ul { columns: 2; padding-left: 1.2rem; }
"""


def api_page(description: dict[str, Any], style_address: str, description_address: str) -> str:
    """The whole page."""
    schemas = description.get("components", {}).get("schemas", {})
    routes = [
        (method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    contents = "".join(
        f'<li><a href="#{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></a></li>'
        for method, path, _ in routes
    )
    used = sorted(name for name in schemas if name not in ("HTTPValidationError", "ValidationError"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(description["info"]["title"])}: API</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{style_address}"></head>'
        f"<body><header><h1>{escape(description['info']['title'])}: API</h1>"
        f"<p>{escape(description['info'].get('description', ''))}</p>"
        f'<p>Version {escape(description["info"]["version"])}. <a href="{description_address}">OpenAPI description</a>.</p>'
        f'</header><nav aria-label="Requests"><ul>{contents}</ul></nav><main>'
        + "".join(_route(*route) for route in routes)
        + "<h2>Objects</h2>"
        + "".join(_object(name, schemas[name]) for name in used)
        + "</main></body></html>"
    )


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    parts = [f'<section><h2 id="{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></h2>']
    parts.append(f"<p>{escape(operation.get('description', ''))}</p>")
    if body:
        parts.append(f"<p>Body: {_kind(body)}</p>")
    rows = []
    for status, answer in operation["responses"].items():
        kinds = [
            f"{escape(kind)}: {_kind(entry.get('itemSchema', entry.get('schema', {})))}"
            for kind, entry in answer.get("content", {}).items()
        ]
        rows.append(
            f"<tr><th scope='row'>{status}</th><td>{escape(answer['description'])}</td><td>{'<br>'.join(kinds)}</td></tr>"
        )
    parts.append(f"<table><caption>Answers</caption><tbody>{''.join(rows)}</tbody></table></section>")
    return "".join(parts)


def _object(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope='row'><code>{escape(member)}</code></th><td>{_kind(kind)}</td>"
        f"<td>{_remark(member, kind, schema)}</td></tr>"
        for member, kind in schema.get("properties", {}).items()
    )
    return (
        f'<section id="object-{escape(name)}"><h3>{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
        f"<table><caption>Members</caption><tbody>{rows}</tbody></table></section>"
    )


def _remark(member: str, kind: dict[str, Any], schema: dict[str, Any]) -> str:
    parts = [escape(kind.get("description", ""))]
    if member in schema.get("required", []):
        parts.append("required")
    elif "default" in kind:
        parts.append(f"default <code>{escape(json.dumps(kind['default']))}</code>")
    return '<span class="dim">' + "; ".join(part for part in parts if part) + "</span>"


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words, with a link where it has a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#object-{name}">{name}</a>'
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(_kind(option) for option in schema[choice])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"<code>{escape(json.dumps(v))}</code>" for v in schema.get("enum", [schema.get("const")]))
    words = str(schema.get("type", "anything"))
    words = f"list of ({_kind(schema.get('items', {}))})" if words == "array" else escape(words)
    limits = [
        f"{text} {schema[key]:,}"
        for key, text in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("minLength", "length from"),
            ("maxLength", "length to"),
            ("minItems", "at least"),
            ("maxItems", "at most"),
        )
        if key in schema
    ]
    return f"{words} ({', '.join(limits)})" if limits else words


def _anchor(method: str, path: str) -> str:
    return escape(f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}")
