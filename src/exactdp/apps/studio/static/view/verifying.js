/** A certificate that was dropped or chosen: the server proves its claim again, and the checks are shown. */

import { ask } from "../ask/api.js";
import { byId, headAndBody, make } from "../dom.js";
import { shell, workForm } from "./dialogs.js";

const PASSED = new Map([
  [true, "passed"],
  [false, "failed"],
  [null, "not made"],
]);

/** Verify the certificate in a file and say what was found. */
export function verifyDialog(name, text) {
  const dialog = byId("verify-dialog");
  const lead = make(
    "p",
    { className: "lead" },
    `${name} is a certificate. Its claim is proved again here, on other contours than it was made with; this takes some seconds.`,
  );
  const form = workForm(dialog, "Verify", [lead], async (signal) => {
    const found = await ask("/verify", { text }, signal);
    const rows = found.checks.map(({ name: check, passed, note }) => ({
      names: [check],
      cells: [PASSED.get(passed), note],
    }));
    const verdict = make(
      "p",
      { className: `statement verdict ${found.holds ? "holds" : "fails"}`, id: "verify-verdict" },
      found.reason,
    );
    return [
      verdict,
      make(
        "table",
        { className: "checks" },
        make("caption", {}, "What was checked"),
        ...headAndBody(["Check", "Result", "Note"], rows),
      ),
    ];
  });
  shell(dialog, "verify-heading", "Verify a certificate", form);
  form.requestSubmit();
}
