"""Passwords and keys that are known by their form; a memory that holds one does not travel.

Only formats that nothing else has: a prefix given by the issuer and the exact alphabet and length
behind it, as the issuers document them and public rule sets (gitleaks, GitHub's) list them.
"""

from __future__ import annotations

import re

_FORMATS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----\s*[\w+/=:\-., \r\n]{40}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_\w{82})\b",
    "a GitLab token": r"\bglpat-[\w-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-(?:\d+-){1,3}[A-Za-z0-9-]{20,}",
    "a Slack webhook": r"https://hooks\.slack\.com/services/T\w{8,}/B\w{8,}/\w{24}",
    "a Stripe key": r"\b[rs]k_live_[A-Za-z0-9]{24,}\b",
    "a Google API key": r"\bAIza[\w-]{35}(?![\w-])",
    "an OpenAI key": r"\bsk-(?:[a-z]+-)?[\w-]{20,}T3BlbkFJ[\w-]{20,}",
    "an Anthropic key": r"\bsk-ant-[a-z]+\d\d-[\w-]{80,}",
    "a Hugging Face token": r"\bhf_[A-Za-z]{34}\b",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a PyPI token": r"\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "a SendGrid key": r"\bSG\.[\w-]{22}\.[\w-]{43}(?![\w-])",
    "a DigitalOcean token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "a Telegram bot token": r"\b\d{8,10}:AA[\w-]{33}(?![\w-])",
}
_ANY = re.compile("|".join(f"({pattern})" for pattern in _FORMATS.values()))


def leak(text: str) -> str:
    """Name the first secret in `text` ("a GitHub token"); empty when there is none."""
    match = _ANY.search(text)
    return list(_FORMATS)[(match.lastindex or 1) - 1] if match else ""


def objection(data: bytes) -> str:
    """Say why a file must not travel; empty when it may."""
    found = leak(data.decode("utf-8", "replace"))
    return f"it seems to hold {found}" if found else ""
