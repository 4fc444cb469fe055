"""The path by which users know the audit of noise (apps/release/audit.py)."""

from exactdp.apps.release.audit import Audit, AuditPoint, audit

__all__ = ["Audit", "AuditPoint", "audit"]
