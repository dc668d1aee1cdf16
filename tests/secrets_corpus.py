"""Texts that hold a secret, drawn from a seed, so that no scanner of repositories reports this file."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

Draw = Callable[[random.Random], str]

LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
DIGITS = "123456789"


def of(alphabet: str, *lengths: int, join: str = "") -> Draw:
    """Return what draws parts of these lengths from an alphabet."""
    return lambda r: join.join("".join(r.choices(alphabet, k=length)) for length in lengths)


def after(prefix: str, alphabet: str, *lengths: int, join: str = "", end: str = "") -> Draw:
    """Return the same behind a prefix."""
    return lambda r: prefix + of(alphabet, *lengths, join=join)(r) + end


def after_each(prefixes: str, alphabet: str, *lengths: int, join: str = "") -> tuple[Draw, ...]:
    """Return what draws one behind each of some prefixes."""
    return tuple(after(prefix, alphabet, *lengths, join=join) for prefix in prefixes.split())


def pem(kind: str, line_end: str = "\n") -> Draw:
    """Return what draws a key in PEM."""

    def draw(r: random.Random) -> str:
        text = base64.b64encode(r.randbytes(600)).decode()
        lines = [text[start : start + 64] for start in range(0, len(text), 64)]
        return line_end.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])

    return draw


def kubeconfig(kind: str) -> Draw:
    """Return what draws the key of a kubeconfig: PEM in base64."""
    return lambda r: "client-key-data: " + base64.b64encode(pem(kind)(r).encode()).decode()


def jwt(r: random.Random) -> str:
    """Draw a JSON Web Token."""
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"ada-4711","role":"admin"}', r.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


SECRETS: dict[str, tuple[Draw, ...]] = {
    "a private key": (
        pem("RSA PRIVATE KEY"),
        pem("OPENSSH PRIVATE KEY", "\r\n"),
        pem("PRIVATE KEY", "\\n"),
        pem("PRIVATE KEY", "\n> "),
        pem("PGP PRIVATE KEY BLOCK"),
        kubeconfig("PRIVATE KEY"),
        kubeconfig("RSA PRIVATE KEY"),
        kubeconfig("EC PRIVATE KEY"),
        kubeconfig("OPENSSH PRIVATE KEY"),
        kubeconfig("ENCRYPTED PRIVATE KEY"),
        kubeconfig("PGP PRIVATE KEY BLOCK"),
    ),
    "a PuTTY private key": (lambda _: "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",),
    "an age secret key": (after("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),),
    "a JSON Web Key": (after('{"kty": "EC", "x": "a", "d": "', URL, 43, end='"}'),),
    "a password in an address": (
        after("postgres://app:", ALNUM, 14, end="@db.memories.io:5432/app"),
        after("redis://:", ALNUM, 20, end="@cache.memories.io:6379/0"),
        after("https://marco:", ALNUM, 12, end="@intern.memories.io/"),
    ),
    "an authorization header": (
        after("curl -H 'Authorization: Bearer ", URL, 43, end="'"),
        after("Authorization: Basic ", ALNUM, 24, end="=="),
        after('"authorization": "token ', ALNUM, 40, end='"'),
    ),
    "a password for curl": (
        after("curl -s -u ada:", ALNUM, 12, end=" https://memories.io"),
        after("curl --user 'ada:", ALNUM, 12, end="' https://memories.io"),
    ),
    "a login in a .netrc file": (after("machine git login ada\n  password ", ALNUM, 20),),
    "an AWS access key": after_each("AKIA ASIA ABIA ACCA", BASE32, 16),
    "an AWS secret key": (after("AWS_SECRET_ACCESS_KEY=", ALNUM, 40),),
    "an Azure storage key": after_each("AccountName=m;AccountKey= SharedAccessKey=", ALNUM, 86),
    "an Azure client secret": (lambda r: of(ALNUM, 3)(r) + "8Q~" + of(ALNUM, 34)(r),),
    "a Google API key": (after("AIza", URL, 35),),
    "a Google client secret": (after("GOCSPX-", URL, 28),),
    "a Google access token": (after("ya29.a0", URL, 180),),
    "a GitHub token": (after("ghp_", ALNUM, 36), after("github_pat_", ALNUM, 22, 59, join="_")),
    "a GitLab token": after_each(
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- gloas-", URL, 20
    ),
    "an Atlassian token": after_each("ATATT3xFfGF0 ATCTT3xFfGN0 ATBB", URL, 170),
    "a Slack token": after_each("xoxb- xapp-1-", DIGITS, 12, 13, 24, join="-"),
    "a Slack webhook": after_each(
        "hooks.slack.com/services/T0 hooks.slack.com/workflows/T0 hooks.slack.com/triggers/T0",
        UPPER,
        9,
        9,
        24,
        join="/",
    ),
    "a Discord webhook": (
        lambda r: f"https://discord.com/api/webhooks/{of(DIGITS, 18)(r)}/{of(URL, 68)(r)}",
    ),
    "a Discord token": (after("MTk4NjIyNDgzNDcxOTI1MjQ4.", URL, 6, 38, join="."),),
    "a Telegram bot token": (lambda r: f"{of(DIGITS, 10)(r)}:AA{of(URL, 33)(r)}",),
    "a Stripe key": after_each("sk_live_ rk_test_ sk_prod_ whsec_", ALNUM, 32),
    "a Square token": (
        after("sq0atp-", URL, 22),
        after("sq0csp-", URL, 43),
        after("EAAA", URL, 60),
    ),
    "a Shopify token": after_each("shpat_ shpca_ shppa_ shpss_ shpua_", HEX, 32),
    "an Anthropic key": (after("sk-ant-api03-", URL, 93, end="AA"),),
    "an OpenAI key": (
        *after_each("sk-proj- sk-svcacct- sk-admin-", URL, 120),
        after("sk-or-v1-", HEX, 64),
        after("sk-", ALNUM, 20, 20, join="T3BlbkFJ"),
        after("sk-", ALNUM, 48),
    ),
    "a key of an AI service": (
        *after_each("gsk_ pplx-", ALNUM, 52),
        after("xai-", ALNUM, 80),
        after("r8_", ALNUM, 37),
        after("tvly-", URL, 32),
        after("fw_", ALNUM, 24),
        after("nvapi-", URL, 64),
        after("csk-", LOWER, 48),
        *after_each("lsv2_pt_ lsv2_sk_", HEX, 32, 10, join="_"),
    ),
    "a Hugging Face token": after_each("hf_ api_org_", string.ascii_letters, 34),
    "a token of a package registry": (
        after("npm_", ALNUM, 36),
        after("pypi-AgEIcHlwaS5vcmc", ALNUM, 150),
        after("rubygems_", HEX, 48),
        after("cio", ALNUM, 32),
        after("oy2", LOWER, 43),
    ),
    "a Docker token": after_each("dckr_pat_ dckr_oat_", URL, 27),
    "a DigitalOcean token": (after("dop_v1_", HEX, 64),),
    "a Cloudflare token": (
        after("v1.0-", HEX, 24, 146, join="-"),
        *after_each("cfut_ cfat_ cfk_", ALNUM, 40),
    ),
    "a token of a hosting service": (
        after("HRKU-", URL, 60),
        after("fo1_", URL, 43),
        after("nfp_", ALNUM, 36),
        after("rnd_", ALNUM, 32),
        *after_each("pul- sbp_", HEX, 40),
        after("sb_secret_", URL, 31),
        after("vcp_", ALNUM, 56),
    ),
    "a Vault or Terraform token": (after("hvs.", URL, 95), of(ALNUM, 14, 67, join=".atlasv1.")),
    "a token of a monitoring service": (
        after("glsa_", ALNUM, 32, 8, join="_"),
        after("NRAK-", UPPER, 27),
        after("sntryu_", HEX, 64),
        after("dt0c01.", UPPER, 24, 64, join="."),
        after("phx_", ALNUM, 43),
    ),
    "a key of a mail service": (
        after("SG.", ALNUM, 22, 43, join="."),
        after("xkeysib-", HEX, 64, 16, join="-"),
        after("re_", ALNUM, 8, 24, join="_"),
        after("key-", HEX, 32),
        of(HEX, 32, 0, join="-us21"),
    ),
    "a Twilio key": (after("SK", HEX, 32),),
    "a Databricks token": (after("dapi", HEX, 32),),
    "a token of a workplace service": (
        *after_each("lin_api_ lin_oauth_ ntn_", ALNUM, 43),
        after("secret_", ALNUM, 43),
        after("figd_", URL, 40),
        lambda r: "pat" + of(ALNUM, 14)(r) + "." + of(HEX, 64)(r),
        after("PMAK-", HEX, 24, 34, join="-"),
    ),
    "a 1Password token": (after("ops_eyJ", URL, 300),),
    "a Tailscale key": (after("tskey-auth-", ALNUM, 16, 32, join="-"),),
    "a JSON Web Token": (jwt,),
}
"""By the kind that is reported, texts that hold one."""

PASSWORDS = (
    "password: correct-horse-battery",
    "my PIN is 4711",
    "PIN of my card: 4711",
    "The password of the router is Foo1bar.",
    "wifi password = hunter2!",
    'DB_PASSWORD="s3cr3t!x"',
    "passphrase -> moon-river-7",
    "pwd := t0ps3cret",
    "| password: | `blue#42` |",
    "secret: tr0ub4dor&3",
    "userPassword: 'hunter-2'",
    "API key: 8f3kd93kd02k",
    "access_token=9f86d081884c7d65",
    "das Passwort ist Haus4711",
    "пароль: Луна-2024",
    "The key box PIN is 4711",
    "My token app password is Tr0ub4dor&3",
    "The token page and password: hunter2!",
    "PIN-Code: 4711",
)
"""A name beside a value with a digit or a symbol."""

ORDINARY = (
    "Marco's dog Max is allergic to chicken.",
    "My password manager is Bitwarden.",
    "The secret of good bread is time: 18 hours in the fridge.",
    "Anna's key is under the flower pot.",
    "The PIN is 4 digits long.",
    "password: changeme123",
    'password = "<your password here>"',
    'api_key = "xxxxxxxxxxxxxxxxxxxxxxxx"',
    "SECRET_KEY=${SECRET_KEY}",
    'password: "{{ vault_postgres_password }}"',
    "token = get_token(user)",
    "const apiKey = process.env.STRIPE_SECRET_KEY_PRODUCTION",
    "password = getpass.getpass()",
    "key: value, primary key: user_2",
    "commit key: 2dc477ac10d6c07b3fe008f6360377333740d8a2",
    "idempotency_key: d95bafc8-f2a4-427b-9cf4-bb99f4bea973",
    "the key is up-to-date",
    "secret: arn:aws:secretsmanager:eu-west-1:4711:secret/db-1",
    "password: ./secrets/db_1.txt",
    "passwd: self.settings.db_1",
    "s3_key = backups/postgres/2026-11-24.dump.gz",
    "postgres://app:s3cretpw@db.memories.test/app, https://ada:s3cretpw@memories.invalid/",
    "postgres://$USER:$PASSWORD@localhost/db and redis://localhost:6379/0",
    "git clone git@github.com:marco/memories.git",
    "AKIAIOSFODNN7EXAMPLE is the key that the documentation shows",
    "JWTs begin with eyJ, and a private key with five dashes and BEGIN",
    "The meeting is at 12:30 in room A3-4; phone +49 221 4711 0815.",
    "Was geht? Grüße aus Köln! パスワードは覚えていない。",
)
"""Texts that hold none."""
