"""Texts that hold a secret, texts that do not, and texts that nearly do.

No secret stands here: each is put together from a seed when a test asks, by what its issuer says
of its form. So no scanner of repositories takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

Draw = Callable[[random.Random], str]
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
B64 = ALNUM + "+/"
HEX = "0123456789abcdef"
B32 = string.ascii_uppercase + "234567"


def of(alphabet: str, *lengths: int, join: str = "") -> Draw:
    """Return what draws parts of these lengths from an alphabet."""
    return lambda r: join.join("".join(r.choices(alphabet, k=length)) for length in lengths)


def after(prefix: str, alphabet: str, *lengths: int, join: str = "", end: str = "") -> Draw:
    """Return the same, behind a prefix."""
    return lambda r: prefix + of(alphabet, *lengths, join=join)(r) + end


def any_uuid(r: random.Random) -> str:
    """Draw a UUID."""
    return str(uuid.UUID(int=r.getrandbits(128), version=4))


def pem(kind: str, size: int, line_end: str = "\n", wrap: int = 64) -> Draw:
    """Return what draws a key in PEM."""

    def draw(r: random.Random) -> str:
        text = base64.b64encode(bytes([0x30, 0x82, 4, 0xA4, 2, 1, 0]) + r.randbytes(size)).decode()
        lines = [text[at : at + wrap] for at in range(0, len(text), wrap)]
        return line_end.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])

    return draw


def service_account(r: random.Random) -> str:
    """Draw the file that Google Cloud gives for a service account."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "memories-4711",
            "private_key_id": of(HEX, 40)(r),
            "private_key": pem("PRIVATE KEY", 1190)(r),
            "client_email": "bot@memories-4711.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
        },
        indent=2,
    )


def jwt(r: random.Random) -> str:
    """Draw a JSON Web Token."""
    claims = {"sub": any_uuid(r), "iat": r.randrange(10**9, 2 * 10**9), "role": "admin"}
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "typ": "JWT"}, claims)]
    parts.append(r.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def with_checksum(r: random.Random) -> str:
    """Draw a GitHub token as its issuer does: thirty characters, and six of a checksum."""
    body = of(ALNUM, 30)(r)
    number, tail = zlib.crc32(body.encode()), ""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    for _ in range(6):
        number, rest = divmod(number, 62)
        tail = digits[rest] + tail
    return f"ghp_{body}{tail}"


def openssh(r: random.Random) -> str:
    """Draw an OpenSSH key, which has many zero bytes in its head."""
    head = (
        b"openssh-key-v1\0\0\0\0\4none\0\0\0\4none\0\0\0\0\0\0\0\1\0\0\0\x33\0\0\0\x0bssh-ed25519"
    )
    text = base64.b64encode(head + r.randbytes(330)).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    kind = "OPENSSH PRIVATE KEY"
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


def age(r: random.Random) -> str:
    """Draw an age identity: Bech32 in capitals."""
    return "AGE-SECRET-KEY-1" + "".join(r.choices("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", k=58))


def discord(r: random.Random) -> str:
    """Draw a Discord bot token: the bot's number in base64, a time, a signature."""
    number = base64.b64encode(str(r.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return f"{number}.{of(URL, 6)(r)}.{of(URL, 38)(r)}"


SECRETS: dict[str, Draw] = {
    # keys in files
    "rsa key": pem("RSA PRIVATE KEY", 1180),
    "pkcs8 key": pem("PRIVATE KEY", 1180),
    "ec key": pem("EC PRIVATE KEY", 114),
    "openssh key": openssh,
    "pgp key": lambda r: pem("PGP PRIVATE KEY BLOCK", 600)(r).replace("-----\n", "-----\n\n", 1),
    "encrypted key": lambda r: pem("RSA PRIVATE KEY", 600)(r).replace(
        "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,4E5A\n\n", 1
    ),
    **{
        f"{kind} in kubeconfig": lambda r, kind=kind: "client-key-data: "  # type: ignore[misc]
        + base64.b64encode(pem(kind, 600)(r).encode()).decode()
        for kind in ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY",
                     "ENCRYPTED PRIVATE KEY")
    },
    "jdbc": lambda r: f"jdbc:postgresql://db.internal:5432/shop?user=ada&password={of(ALNUM, 16)(r)}",
    "netrc": lambda r: f"machine git.internal login ada password {of(ALNUM, 20)(r)}",
    "netrc in lines": lambda r: f"machine git.internal\n  login ada\n  password {of(ALNUM, 20)(r)}",
    "bearer": lambda r: f"curl -H 'Authorization: Bearer {of(URL, 43)(r)}'",
    "basic": lambda r: f"authorization: basic {of(B64, 32)(r)}==",
    "key in .env": lambda r: 'KEY="' + pem("PRIVATE KEY", 1180, "\\n")(r) + '"',
    "key with indents": pem("PRIVATE KEY", 1180, "\n    "),
    "key in one line": pem("PRIVATE KEY", 1180, " ", 2000),
    "key with crlf": pem("PRIVATE KEY", 600, "\r\n"),
    "quoted key": pem("PRIVATE KEY", 600, "\n> "),
    "service account": service_account,
    "putty key": lambda r: (
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n"
        f"{of(B64, 64)(r)}\n{of(B64, 16)(r)}\nPrivate-Lines: 1\n{of(B64, 44)(r)}\n"
    ),
    "age": age,
    "jwk": lambda r: (
        f'{{"kty": "EC", "crv": "P-256", "x": "{of(URL, 43)(r)}", "d": "{of(URL, 43)(r)}"}}'
    ),
    "wireguard": lambda r: f"PrivateKey = {base64.b64encode(r.randbytes(32)).decode()}",
    "jwt": jwt,
    # clouds
    "aws id": after("AKIA", B32, 16),
    "aws temporary id": after("ASIA", B32, 16),
    "aws secret in credentials": after("aws_secret_access_key = ", B64, 40),
    "aws secret in json": after('"SecretAccessKey": "', B64, 40, end='"'),
    "aws secret in .env": after("AWS_SECRET_ACCESS_KEY=", B64, 40),
    "aws secret in yaml": after("aws_secret_access_key: '", B64, 40, end="'"),
    "aws session": after("aws_session_token=IQoJb3JpZ2lu", B64, 300),
    "bedrock": after("ABSKQmVkcm9ja0FQSUtleS", B64, 110),
    "mws": lambda r: f"amzn.mws.{any_uuid(r)}",
    "google api": after("AIza", URL, 35),
    "google oauth": after("GOCSPX-", URL, 28),
    "google access": after("ya29.a0", URL, 180),
    "google refresh": after("1//0", URL, 99),
    "azure storage": after(
        "DefaultEndpointsProtocol=https;AccountName=memories;AccountKey=", B64, 86, end="=="
    ),
    "azure service bus": after(
        "Endpoint=sb://m.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=",
        B64, 43, end="=",
    ),
    "azure client secret": lambda r: f"{of(ALNUM, 3)(r)}8Q~{of(ALNUM + '~._-', 34)(r)}",
    "azure sas": after("https://m.blob.core.windows.net/a?sv=2022-11-02&sig=", ALNUM, 43, end="%3D"),
    "azure devops": lambda r: f"{of(ALNUM, 76)(r)}AZDO{of(ALNUM, 4)(r)}",
    "azure ai": lambda r: f"{of(ALNUM, 52)(r)}JQQJ99{of(ALNUM, 26)(r)}",
    "alibaba": after("LTAI5t", ALNUM, 18),
    "tencent": after("AKID", ALNUM, 32),
    "yandex": after("AQVN", URL, 36),
    "digitalocean": after("dop_v1_", HEX, 64),
    "digitalocean oauth": after("doo_v1_", HEX, 64),
    "heroku": lambda r: f"HEROKU_API_KEY={any_uuid(r)}",
    "heroku new": after("HRKU-AA", URL, 58),
    "scaleway": lambda r: f"SCW_SECRET_KEY={any_uuid(r)}",
    "cloudflare": after("CLOUDFLARE_API_TOKEN=", URL, 40),
    "cloudflare global": after('cloudflare_api_key = "', HEX, 37, end='"'),
    "cloudflare origin": after("v1.0-", HEX, 24, 146, join="-"),
    "fastly": after("FASTLY_API_TOKEN=", URL, 32),
    "fly": after("FlyV1 fm2_", B64, 200),
    "netlify": after("nfp_", ALNUM, 36),
    "render": after("rnd_", ALNUM, 32),
    "vercel": after("VERCEL_TOKEN=", ALNUM, 24),
    "hetzner": after("HCLOUD_TOKEN=", ALNUM, 64),
    "linode": after("LINODE_TOKEN=", HEX, 64),
    "terraform": lambda r: f"{of(ALNUM, 14)(r)}.atlasv1.{of(ALNUM, 67)(r)}",
    "vault": after("hvs.", URL, 95),
    "vault batch": after("hvb.", URL, 140),
    "pulumi": after("pul-", HEX, 40),
    "doppler": after("dp.pt.", ALNUM, 43),
    "infisical": after("st.", HEX, 24, 32, 32, join="."),
    "1password": lambda r: "ops_" + jwt(r).split(".", 1)[1].replace(".", "")[:90] + of(URL, 300)(r),
    "1password secret key": after("A3-", UPPER, 6, 6, 5, 5, 5, 5, join="-"),
    "bitwarden": lambda r: f"0.{any_uuid(r)}.{of(ALNUM, 30)(r)}:{of(B64, 22)(r)}==",
    "tailscale": lambda r: f"tskey-auth-{of(ALNUM, 16)(r)}-{of(ALNUM, 32)(r)}",
    "okta": after("Authorization: SSWS 00", URL, 40),
    # code
    "github": with_checksum,
    "github oauth": after("gho_", ALNUM, 36),
    "github app": after("ghs_", ALNUM, 36),
    "github refresh": after("ghr_", ALNUM, 76),
    "github fine-grained": after("github_pat_", ALNUM, 22, 59, join="_"),
    "github in json": lambda r: '{"a":"x\\n' + with_checksum(r) + '"}',
    "github in an address": lambda r: f"https://{with_checksum(r)}@github.com/marco/x.git",
    "gitlab": after("glpat-", URL, 20),
    "gitlab routable": lambda r: f"glpat-{of(URL, 27)(r)}.01.{of(LOWER, 9)(r)}",
    "gitlab deploy": after("gldt-", URL, 20),
    "gitlab runner": after("glrt-", URL, 20),
    "gitlab trigger": after("glptt-", HEX, 40),
    "gitlab job": after("glcbt-64_", URL, 20),
    "gitlab old runner": after("GR1348941", URL, 20),
    "atlassian": after("ATATT3xFfGF0", URL, 170, end="=0A1B2C3D"),
    "bitbucket": after("ATBB", ALNUM, 32),
    "trello": after("ATTA", HEX, 72),
    "npm": after("npm_", ALNUM, 36),
    "npmrc": lambda r: f"//registry.npmjs.org/:_authToken={any_uuid(r)}",
    "pypi": after("pypi-AgEIcHlwaS5vcmc", URL, 150),
    "rubygems": after("rubygems_", HEX, 48),
    "crates": after("cio", ALNUM, 32),
    "nuget": after("oy2", LOWER, 43),
    "clojars": after("CLOJARS_", HEX, 60),
    "docker": after("dckr_pat_", URL, 27),
    "docker config": lambda r: (
        '{"auths":{"ghcr.io":{"auth":"' + base64.b64encode(r.randbytes(33)).decode() + '"}}}'
    ),
    "jfrog": after("AKCp", ALNUM, 69),
    "sonar": after("squ_", HEX, 40),
    "circleci": lambda r: f"CCIPAT_{of(ALNUM, 22)(r)}_{of(HEX, 40)(r)}",
    "buildkite": after("bkua_", HEX, 40),
    "sourcegraph": lambda r: f"sgp_{of(HEX, 16)(r)}_{of(HEX, 40)(r)}",
    "snyk": lambda r: f"SNYK_TOKEN={any_uuid(r)}",
    "postman": after("PMAK-", HEX, 24, 34, join="-"),
    "figma": after("figd_", URL, 40),
    # models
    "openai project": lambda r: f"sk-proj-{of(URL, 74)(r)}T3BlbkFJ{of(URL, 74)(r)}",
    "openai old": lambda r: f"sk-{of(ALNUM, 20)(r)}T3BlbkFJ{of(ALNUM, 20)(r)}",
    "openai service": lambda r: f"sk-svcacct-{of(URL, 58)(r)}T3BlbkFJ{of(URL, 58)(r)}",
    "anthropic": after("sk-ant-api03-", URL, 93, end="AA"),
    "anthropic admin": after("sk-ant-admin01-", URL, 93, end="AA"),
    "openrouter": after("sk-or-v1-", HEX, 64),
    "deepseek": after("sk-", HEX, 32),
    "xai": after("xai-", ALNUM, 80),
    "groq": after("gsk_", ALNUM, 52),
    "perplexity": after("pplx-", ALNUM, 48),
    "replicate": after("r8_", ALNUM, 37),
    "hugging face": after("hf_", string.ascii_letters, 34),
    "cerebras": after("csk-", LOWER, 48),
    "nvidia": after("nvapi-", URL, 64),
    "langsmith": after("lsv2_pt_", HEX, 32, 10, join="_"),
    "langfuse": lambda r: f"sk-lf-{any_uuid(r)}",
    "pinecone": lambda r: f"pcsk_{of(ALNUM, 5)(r)}_{of(ALNUM, 63)(r)}",
    "tavily": after("tvly-", ALNUM, 32),
    "elevenlabs": after("sk_", HEX, 48),
    "mistral": after("MISTRAL_API_KEY=", ALNUM, 32),
    "wandb": after("WANDB_API_KEY=", HEX, 40),
    # data
    "postgres": lambda r: f"postgres://app:{of(ALNUM, 14)(r)}@db.memories.io:5432/app",
    "mysql": lambda r: f"mysql+pymysql://app:{of(ALNUM, 10)(r)}@10.0.0.7/app",
    "mongodb": lambda r: f"mongodb+srv://app:{of(ALNUM, 16)(r)}@cluster0.a1b2c.mongodb.net/",
    "redis": lambda r: f"redis://:{of(ALNUM, 20)(r)}@cache.memories.io:6379/0",
    "amqp": lambda r: f"amqps://app:{of(ALNUM, 12)(r)}@mq.memories.io/vhost",
    "basic auth": lambda r: f"https://marco:{of(ALNUM, 12)(r)}@intern.memories.io/",
    "databricks": after("dapi", HEX, 32),
    "supabase": after("sbp_", HEX, 40),
    "supabase secret": lambda r: f"sb_secret_{of(URL, 22)(r)}_{of(URL, 8)(r)}",
    "planetscale": after("pscale_tkn_", ALNUM, 43),
    "neon": after("napi_", LOWER, 64),
    "airtable": lambda r: f"pat{of(ALNUM, 14)(r)}.{of(HEX, 64)(r)}",
    "contentful": after("CFPAT-", URL, 43),
    "mapbox": lambda r: f"sk.eyJ{of(URL, 70)(r)}.{of(URL, 22)(r)}",
    "algolia": after("ALGOLIA_ADMIN_KEY=", HEX, 32),
    "confluent": after("CONFLUENT_API_SECRET=", B64, 64),
    # messages
    "slack bot": lambda r: f"xoxb-{of('123456789', 12, 13, join='-')(r)}-{of(ALNUM, 24)(r)}",
    "slack user": lambda r: f"xoxp-{of('123456789', 12, 12, 12, join='-')(r)}-{of(HEX, 32)(r)}",
    "slack app": lambda r: (
        f"xapp-1-A0{of(UPPER, 9)(r)}-{of('123456789', 13)(r)}-{of(HEX, 64)(r)}"
    ),
    "slack config": after("xoxe.xoxp-1-", ALNUM, 166),
    "slack webhook": lambda r: (
        f"https://hooks.slack.com/services/T0{of(UPPER, 9)(r)}/B0{of(UPPER, 9)(r)}/{of(ALNUM, 24)(r)}"
    ),
    "discord": discord,
    "discord webhook": lambda r: (
        f"https://discord.com/api/webhooks/{of('123456789', 18)(r)}/{of(URL, 68)(r)}"
    ),
    "teams webhook": lambda r: (
        f"https://m.webhook.office.com/webhookb2/{any_uuid(r)}@{any_uuid(r)}/IncomingWebhook/"
        f"{of(HEX, 32)(r)}/{any_uuid(r)}"
    ),
    "telegram": lambda r: f"{of('123456789', 10)(r)}:AA{of(URL, 33)(r)}",
    "twilio key": after("SK", HEX, 32),
    "twilio token": after("TWILIO_AUTH_TOKEN=", HEX, 32),
    "sendgrid": after("SG.", URL, 22, 43, join="."),
    "mailgun": after("key-", HEX, 32),
    "mailgun new": after("MAILGUN_API_KEY=", HEX, 32, 8, 8, join="-"),
    "mailchimp": lambda r: f"{of(HEX, 32)(r)}-us{r.randrange(1, 22)}",
    "brevo": lambda r: f"xkeysib-{of(HEX, 64)(r)}-{of(ALNUM, 16)(r)}",
    "resend": after("re_", ALNUM, 8, 24, join="_"),
    # money
    "stripe": after("sk_live_", ALNUM, 24),
    "stripe long": after("sk_live_51", ALNUM, 97),
    "stripe test": after("sk_test_", ALNUM, 24),
    "stripe restricted": after("rk_live_", ALNUM, 24),
    "stripe webhook": after("whsec_", ALNUM, 32),
    "square": after("sq0atp-", URL, 22),
    "square new": after("EAAAE", URL, 59),
    "braintree": lambda r: f"access_token$production${of(LOWER, 16)(r)}${of(HEX, 32)(r)}",
    "plaid": lambda r: f"access-production-{any_uuid(r)}",
    "shopify": after("shpat_", HEX, 32),
    "shopify shared": after("shpss_", HEX, 32),
    "razorpay": after("rzp_live_", ALNUM, 14),
    "flutterwave": after("FLWSECK-", HEX, 32, end="-X"),
    "mollie": after("live_", ALNUM, 30),
    "easypost": after("EZAK", ALNUM, 54),
    # watching
    "datadog": after("DD_API_KEY=", HEX, 32),
    "datadog app": after('"datadog_app_key": "', HEX, 40, end='"'),
    "sentry": lambda r: (
        "sntrys_eyJ" + of(ALNUM, 120)(r) + "=_" + of(B64, 43)(r)
    ),
    "sentry user": after("sntryu_", HEX, 64),
    "new relic": after("NRAK-", UPPER, 27),
    "new relic licence": lambda r: f"{of(HEX, 36)(r)}NRAL",
    "grafana": lambda r: f"glsa_{of(ALNUM, 32)(r)}_{of(HEX, 8)(r)}",
    "grafana cloud": after("glc_eyJ", ALNUM, 120),
    "dynatrace": after("dt0c01.", UPPER, 24, 64, join="."),
    "posthog": after("phx_", ALNUM, 43),
    "launchdarkly": lambda r: f"sdk-{any_uuid(r)}",
    # work
    "notion": lambda r: f"ntn_{of('123456789', 11)(r)}{of(ALNUM, 35)(r)}",
    "notion old": after("secret_", ALNUM, 43),
    "linear": after("lin_api_", ALNUM, 40),
    "asana": lambda r: f"1/{of('123456789', 16)(r)}:{of(HEX, 32)(r)}",
    "clickup": lambda r: f"pk_{of('123456789', 8)(r)}_{of(UPPER, 32)(r)}",
    "hubspot": lambda r: f"pat-na1-{any_uuid(r)}",
    "dropbox": after("sl.", URL, 140),
    "facebook": after("EAA", ALNUM, 180),
    "twitter": lambda r: f"{'A' * 22}{of(ALNUM, 22)(r)}%3D{of(ALNUM, 50)(r)}",
    "adafruit": after("aio_", ALNUM, 28),
    # more issuers
    "harness": lambda r: f"pat.{of(URL, 22)(r)}.{of(ALNUM, 24)(r)}.{of(ALNUM, 20)(r)}",
    "harness service": lambda r: f"sat.{of(URL, 22)(r)}.{of(ALNUM, 24)(r)}.{of(ALNUM, 20)(r)}",
    "infracost": after("ico-", ALNUM, 32),
    "octopus": after("API-", UPPER, 26),
    "openshift": after("sha256~", URL, 43),
    "settlemint": after("sm_pat_", ALNUM, 16),
    "settlemint application": after("sm_aat_", ALNUM, 16),
    "maxmind": lambda r: f"{of(ALNUM, 6)(r)}_{of(ALNUM, 29)(r)}_mmk",
    "scalingo": after("tk-us-", URL, 48),
    "intra42": after("s-s4t2ud-", HEX, 64),
    "intra42 as af": after("s-s4t2af-", HEX, 64),
    "defined networking": after("dnkey-", UPPER, 26, 52, join="-"),
    "authress": lambda r: (
        f"sc_{of(ALNUM, 12)(r)}.{of(LOWER, 4)(r)}.acc-{of(LOWER, 16)(r)}.{of(B64, 60)(r)}"
    ),
    "clickhouse": after("4b1d", ALNUM, 38),
    "jfrog identity": after("JFROG_ACCESS_TOKEN=", ALNUM, 64),
    "jfrog key": after("artifactory_api_key: ", ALNUM, 73),
    "jfrog reference": after("cmVmdGtu", ALNUM, 56),
    "kraken": after("KRAKEN_API_SECRET=", B64, 86, end="=="),
    "cloudinary": lambda r: f"cloudinary://{of('123456789', 15)(r)}:{of(URL, 27)(r)}@memories",
}  # fmt: skip


# --- ordinary texts -------------------------------------------------------------------------------

_PROSE = """\
Marco's dog Max is allergic to chicken. | The tokens of the bus line 7 are sold at the kiosk.
We decided on PostgreSQL because of its JSON functions. | My password manager is Bitwarden.
The secret of good bread is time: 18 hours in the fridge. | Anna's key is under the flower pot.
Prefers sk-learn over plain numpy; asks for type hints. | API keys are kept in the vault, not here.
Was geht? Grüße aus Köln! Schlüssel liegt beim Nachbarn. | パスワードは覚えていない。 | Пароль забыт.
The AKIA festival in ASIA, PACIFIC REGIONALS 2026, was won by Bob. | glass, glue and gloves
Use `git push` after the review; CI has a token of its own. | The meeting is at 12:30 in room A3-4.
Das Risk-Management und die Task-Force treffen sich. | He said: "sk-8 is a skate park".
The stripe on the live test fish is yellow. | See https://example.org/a/b?c=d#e for the recipe.
Alice: alice@example.org, Bob: bob@example.com | Phone +49 221 4711 0815, IBAN DE02120300000000202051
The server listens on http://localhost:8080/path and https://[::1]:8443/ | scp a.txt host:/tmp/b
The key is (salt, pepper, 2 eggs) | Key signature: E flat major | token ring networks of the 1980s
Wi-Fi at the hut: ask Maria | The heroku app was shut down in 2022 | Twilio was expensive
datadog costs too much, we moved to grafana | the mistral blows cold in the Provence
Plaid shirts are for hiking | He plays the fiddle, she sings; coinbase of the song is a C
Spotify playlist: Road trip | The Zoom call of Tuesday is cancelled | Twitch streams on Friday
OAuth has a client id and a client secret; ours expire in May | JWTs begin with eyJ, they say
A private key begins with five dashes and BEGIN | -----BEGIN of the story----- | PRIVATE KEYS museum
"""

_CODE = """\
def f(x: int) -> int:\n    return x * 2 ~ for (let i = 0; i < n; i++) { sum += a[i]; }
import os\nkey = os.environ["OPENAI_API_KEY"] ~ const token = process.env.GITHUB_TOKEN;
password = getpass.getpass() ~ secret_key = secrets.token_urlsafe(32) ~ api_key: str | None = None
aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY} ~ SELECT token, secret FROM keys WHERE id = 7;
if (user.password !== hash(password)) throw new Error("wrong password") ~ sk_live = False
git clone git@github.com:marco/memories.git ~ ssh -i ~/.ssh/id_ed25519 marco@192.168.1.7
docker run -e POSTGRES_PASSWORD="$PASSWORD" -p 5432:5432 postgres:16 ~ curl -H "Authorization: Bearer $T"
DATABASE_URL=postgres://$USER:$PASSWORD@localhost/db ~ redis://localhost:6379/0 ~ mongodb://localhost
url = f"postgresql://{user}:{password}@{host}/{name}" ~ npm install --save-dev @types/node@20
class HerokuTokenProvider(TokenProvider): ... ~ grep -r "xoxb-" . ~ assert token.startswith("ghp_")
var a="https://"+h+":"+p+"@"+q ~ s/password/******/g ~ chmod 600 ~/.netrc ~ export AIAML_CHECK_SECRETS=true
twilio_token_endpoint = "https://api.twilio.com/2010-04-01" ~ datadog_api_key_file: /run/keys/datadog
<a href="https://de.wikipedia.org/wiki/Schl%C3%BCssel_(Kryptologie)">Key</a> ~ color: #a1b2c3; margin: 0
const SK = "SK"; enum Role { ADMIN, USER } ~ vercel deploy --prod --token "$VERCEL_TOKEN"
"""


def _image(r: random.Random) -> str:
    return f"![](data:image/png;base64,iVBORw0KGgo{base64.b64encode(r.randbytes(6000)).decode()})"


def _minified(r: random.Random) -> str:
    words = ["function", "return", "var", "token", "key", "secret", "this", "null", "prototype"]
    return "".join(
        f"{r.choice(words)} {of(string.ascii_letters, r.randrange(1, 3))(r)}="
        f'{of(string.ascii_letters, 2)(r)}({r.randrange(999)},"{of(LOWER, 4)(r)}");'
        for _ in range(500)
    )


def _lock(r: random.Random) -> str:
    return "\n".join(
        f'"node_modules/{of(string.ascii_lowercase, 8)(r)}": {{"version": "{r.randrange(9)}.1.0", '
        f'"integrity": "sha512-{base64.b64encode(r.randbytes(64)).decode()}"}}'
        for _ in range(40)
    )


def _cargo(r: random.Random) -> str:
    return "\n".join(
        f'[[package]]\nname = "{of(string.ascii_lowercase, 7)(r)}"\nversion = "1.2.3"\n'
        f'checksum = "{of(HEX, 64)(r)}"\n'
        for _ in range(40)
    )


def _log(r: random.Random) -> str:
    return "\n".join(
        f"2026-11-22T11:{r.randrange(60):02}:07Z INFO [{any_uuid(r)}] GET /v1/tokens/{r.randrange(9**9)}"
        f" 200 {r.randrange(999)}ms trace={of(HEX, 32)(r)} span={of(HEX, 16)(r)}"
        for _ in range(40)
    )


def _git_log(r: random.Random) -> str:
    return "\n".join(
        f"commit {of(HEX, 40)(r)}\nAuthor: Marco <marco@example.org>\n\n    Rotate the token\n"
        for _ in range(20)
    )


def _public_key(r: random.Random) -> str:
    kind = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"
    return f"{kind}{base64.b64encode(r.randbytes(32)).decode()} marco@laptop"


_MADE: dict[str, Draw] = {
    "certificate": pem("CERTIFICATE", 900),
    "public key": pem("PUBLIC KEY", 270),
    "certificate in kubeconfig": lambda r: (
        "certificate-authority-data: "
        + base64.b64encode(pem("CERTIFICATE", 600)(r).encode()).decode()
    ),
    "authorization": lambda _: (
        "The authorization: a bearer token that the machine sends at login; "
        "its password stays as it was, and each machine has one login and no password of its own."
    ),
    "rsa public key": pem("RSA PUBLIC KEY", 270),
    "pgp public key": pem("PGP PUBLIC KEY BLOCK", 900),
    "pgp signature": pem("PGP SIGNATURE", 300),
    "request": pem("CERTIFICATE REQUEST", 500),
    "ssh public key": _public_key,
    "known hosts": lambda r: f"github.com {_public_key(r)}",
    "image": _image,
    "minified": _minified,
    "package-lock": _lock,
    "cargo lock": _cargo,
    "log": _log,
    "git log": _git_log,
    "uuids": lambda r: "\n".join(f"id: {any_uuid(r)}" for _ in range(50)),
    "md5": lambda r: f"{of(HEX, 32)(r)}  debian.iso",
    "sha1": lambda r: f"sha1: {of(HEX, 40)(r)}",
    "sha256": lambda r: f"sha256:{of(HEX, 64)(r)}",
    "sha512": lambda r: f"sha512-{base64.b64encode(r.randbytes(64)).decode()}",
    "docker image": lambda r: f"FROM python@sha256:{of(HEX, 64)(r)}",
    "git submodule": lambda r: f"Subproject commit {of(HEX, 40)(r)}",
    "requirements": lambda r: f"click==8.3.0 --hash=sha256:{of(HEX, 64)(r)}",
    "etag": lambda r: f'ETag: W/"{of(HEX, 32)(r)}"',
    "account ids": lambda r: f"arn:aws:iam::{r.randrange(10**11, 10**12)}:role/reader",
    "aws resource ids": lambda r: f"AIDA{of(B32, 17)(r)} and AROA{of(B32, 17)(r)}",
    "publishable keys": lambda r: f"pk_live_{of(ALNUM, 24)(r)} and pk.eyJ{of(URL, 60)(r)}",
    "twilio account": lambda r: f"AC{of(HEX, 32)(r)}",
    "video": lambda r: f"https://www.youtube.com/watch?v={of(URL, 11)(r)}",
    "document": lambda r: f"https://docs.google.com/document/d/1{of(URL, 43)(r)}/edit",
    "bitcoin address": lambda r: f"bc1q{of(LOWER, 38)(r)}",
    "ethereum address": lambda r: f"0x{of(HEX, 40)(r)}",
    "onion address": lambda r: f"{of('abcdefghijklmnopqrstuvwxyz234567', 56)(r)}.onion",
    "age recipient": lambda r: f"age1{of('qpzry9x8gf2tvdw0s3jn54khce6mua7l', 58)(r)}",
    "csrf nonce": lambda r: f"<script nonce='{of(B64, 22)(r)}=='>",
    "ids of memories": lambda r: " ".join(of(HEX, 8)(r) for _ in range(50)),
    "coordinates": lambda r: " ".join(f"{r.uniform(-90, 90):.6f}" for _ in range(50)),
    "base64 text": lambda r: base64.b64encode(r.randbytes(3000)).decode(),
    "wrapped base64": lambda r: base64.encodebytes(r.randbytes(3000)).decode(),
    "url-safe base64": lambda r: base64.urlsafe_b64encode(r.randbytes(3000)).decode(),
    "hex dump": lambda r: r.randbytes(2000).hex(" "),
    "numbers": of("0123456789", 2000),
    "letters": of(string.ascii_lowercase, 2000),
}


def ordinary() -> list[str]:
    """Return texts in which there is no secret."""
    prose = [each.strip() for line in _PROSE.splitlines() for each in line.split(" | ")]
    code = [each.replace("\\n", "\n") for line in _CODE.splitlines() for each in line.split(" ~ ")]
    made = [draw(random.Random(f"{name} {n}")) for name, draw in _MADE.items() for n in range(3)]
    return [*prose, *code, *made]


# --- near misses ----------------------------------------------------------------------------------

_NEAR = """\
AKIAIOSFODNN7{E}
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY{E}KEY
AKIAXXXXXXXXXXXXXXXX
ASIAPACIFICREGIONALS
AKIA1234567890ABCDEF
AKIA<your access key id>
AKIAABCDEFGHIJKLMNOP
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
ghp_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
ghp_0000000000000000000000000000000000000
ghp_1234567890abcdefghijklmnopqrstuvwxyz
ghp_yourPersonalAccessTokenGoesHereNow12
ghp_aBcDaBcDaBcDaBcDaBcDaBcDaBcDaBcDaBcD
ghp_...
github_pat_<your token>
glpat-xxxxxxxxxxxxxxxxxxxx
glpat-your-token-goes-here-please
glpat-{E}-token-value-0
gldt-****************
xoxb-your-token-here-please-and-thanks
xoxb-123456789012-1234567890123-xxxxxxxxxxxxxxxxxxxxxxxx
xoxb-not-a-real-token-this-will-not-work
xapp-1-XXXXXXXXXXX-0000000000000-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
sk-...
sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk-your-api-key-goes-here-and-nowhere-else
sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
sk-proj-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnop
sk-ant-api03-...
sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxAA
sk-or-v1-0000000000000000000000000000000000000000000000000000000000000000
sk_test_xxxxxxxxxxxxxxxxxxxxxxxx
sk_live_{{{{ key }}}}
sk_test_your_stripe_secret_key_here1
whsec_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
whsec_...
rk_live_********************
AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
AIzaYourGoogleApiKeyGoesHereAndSoOn1234
GOCSPX-xxxxxxxxxxxxxxxxxxxxxxxxxxxx
ya29.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
hf_YourHuggingFaceAccessTokenGoesHereX
npm_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
npm_config_registry_and_other_settings_of
//registry.npmjs.org/:_authToken=${{NPM_TOKEN}}
pypi-AgEIcHlwaS5vcmcCJ...
dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
SG.xxxxxxxxxxxxxxxxxxxxxx.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy
SG.your_sendgrid_api_key_id.your_sendgrid_api_key_secret_value_goes_here
key-00000000000000000000000000000000
SKxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
TWILIO_AUTH_TOKEN=your_auth_token
TWILIO_AUTH_TOKEN=0123456789abcdef0123456789abcdef
HEROKU_API_KEY=00000000-0000-0000-0000-000000000000
DD_API_KEY=<YOUR_DATADOG_API_KEY>
DD_API_KEY=${{DD_API_KEY}}
123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11
shpat_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
hvs.CAESIxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
dckr_pat_xxxxxxxxxxxxxxxxxxxxxxxxxxx
lin_api_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
secret_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
dapixxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
glsa_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_xxxxxxxx
gsk_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
postgres://user:password@localhost:5432/db
postgresql://postgres:postgres@db:5432/app
mysql://root:secret@127.0.0.1/app
mongodb://<username>:<password>@cluster0.mongodb.net
mongodb+srv://user:${{MONGO_PASSWORD}}@cluster0.mongodb.net
redis://:mypassword@localhost:6379
https://user:pass@{e}.com/path
https://marco:V3ryS3cret@{e}.org
AccountKey=<your storage key>
AccountKey=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx==
-----BEGIN PRIVATE KEY-----\nMIIEvQ...\n-----END PRIVATE KEY-----
-----BEGIN RSA PRIVATE KEY-----\n<your key>\n-----END RSA PRIVATE KEY-----
-----BEGIN PRIVATE KEY-----\n{E}{E}{E}{E}{E}{E}{E}{E}\n-----END PRIVATE KEY-----
AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ
A3-XXXXXX-XXXXXX-XXXXX-XXXXX-XXXXX-XXXXX
Authorization: Bearer <your token>
Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE
Authorization: Bearer $TOKEN, Authorization: Basic ${{CREDENTIALS}}
Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==
jdbc:postgresql://localhost/test?user=fred&password=secret
jdbc:mysql://host/db?user=root&password=${{DB_PASSWORD}}
machine {e}.com login ada password <password>
machine api.heroku.com login me@{e}.com password changeme
client-key-data: LS0tLS1CRUdJTi...
"""


def near_misses() -> list[str]:
    """Return what stands in documentation where a secret would."""
    lines = _NEAR.format(E="EXAMPLE", e="example").splitlines()
    john = [{"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "John Doe"}]
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in john]
    token = ".".join([*(part.rstrip("=") for part in parts), of(URL, 43)(random.Random(1))])
    return [*(line.replace("\\n", "\n") for line in lines), token]


# --- values beside a name -------------------------------------------------------------------------

ALPHABETS: dict[str, str] = {
    "letters and digits": ALNUM,
    "hexadecimal": HEX,
    "safe in addresses": URL,
    "base64": B64,
    "lower case and digits": LOWER,
    "capitals and digits": UPPER,
    "letters": string.ascii_letters,
    "base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "with signs": ALNUM + "!@#$%^&*-_+=.?~",
}

NAMED: dict[str, tuple[int, str]] = {
    # asked for: at least 48 of 50
    "TOML": (16, 'password = "{}"'),
    "Python": (40, 'api_key = "{}"'),
    ".env": (40, "MYAPP_SECRET={}"),
    "curl": (16, "curl -u admin:{} https://nexus.intern.example-ag.de/"),
    "NuGet": (16, '<add key="ClearTextPassword" value="{}" />'),
    # the same, as other people write it
    "a sentence": (32, "The staging api_key is {}"),
    "dictated": (16, "the password for the NAS: {}"),
    "JSON": (24, '{"accessToken": "{}"}'),
    "JSON in JSON": (24, '"{\\"clientSecret\\": \\"{}\\"}"'),
    "YAML": (16, "  db_password: {}\n"),
    "a list of variables": (20, '- name: DB_PASSWORD\n  value: "{}"\n'),
    "XML": (16, "<password>{}</password>"),
    "a property list": (32, "<key>ApiToken</key>\n\t<string>{}</string>"),
    "a header": (32, "X-Api-Key: {}"),
    "TypeScript": (32, 'const apiKey: string = "{}";'),
    "PHP": (32, "define('API_KEY', '{}');"),
    "Ruby": (16, ":password => '{}'"),
    "a shell": (40, 'export GH_TOKEN="{}"'),
    "an entry": (32, "config['secret_key'] = '{}'"),
    "a table": (32, "| API key | `{}` |"),
    "Markdown": (16, "**Password:** `{}`"),
    "an option": (32, "deploy --api-token {}"),
    "a connection": (16, "Server=db;User=sa;Password={};Encrypt=true"),
    "a query": (40, "GET /v1?access_token={}&x=1"),
    # dictated, in the languages that people write
    "German": (20, "Kennwort für den Router: {}"),
    "a German sentence": (20, "Der API-Schlüssel lautet {}"),
    "French": (20, "Mot de passe\u00a0: {}"),
    "a French sentence": (20, "le mot de passe du NAS est {}"),
    "Spanish": (20, "CONTRASEÑA: {}"),
    "a Spanish sentence": (20, "la contraseña de la impresora es {}"),
    "Portuguese": (20, "a senha do roteador é {}"),
    "Italian": (20, "parola d’ordine: {}"),
    "Dutch": (20, "wachtwoord van de router: {}"),
    "Swedish": (20, "Lösenord: {}"),
    "Polish": (20, "hasło: {}"),
    "Romanian": (20, "parolă: {}"),
    "Hungarian": (20, "JELSZÓ: {}"),
    "Turkish": (20, "şifre: {}"),
    "Russian": (20, "Пароль от роутера — {}"),
    "Greek": (20, "κωδικός: {}"),
    "Chinese": (20, "密码：{}"),
    "Japanese": (20, "パスワード： {}"),
    "Korean": (20, "비밀번호: {}"),
    "Arabic": (20, "كلمة المرور: {}"),
    "Hebrew": (20, "סיסמה: {}"),
    "Hindi": (20, "पासवर्ड: {}"),
    # as it is typed or pasted
    "the line below": (20, "Password:\n{}\n"),
    "a paragraph below": (20, "**Password:**\n\n`{}`\n"),
    "a dash": (20, "Password - {}"),
    "a note": (20, "pw: {}"),
    "a short variable": (20, "DB_PASS={}"),
    "full width": (20, "ｐａｓｓｗｏｒｄ＝{}"),
    "quotes of a typesetter": (20, "mot de passe : « {} »"),
    "sshpass": (20, "sshpass -p {} ssh ada@db"),
    "mysql": (20, "mysql -u root -p'{}' app"),
    "mysqldump": (20, "mysqldump -uroot -h db --single-transaction -p{} app > app.sql"),
    "docker login": (20, "docker login -u ada -p {} registry.intern"),
    "redis-cli": (20, "redis-cli -h db -a {} ping"),
    ".pgpass": (20, "db.intern:5432:app:ada:{}\n"),
    ".pgpass for any": (20, "*:*:*:ada:{}\n"),
}


def kubernetes(value: str) -> list[str]:
    """Return a value in a Kubernetes Secret: as people write it, and as kubectl prints it."""
    packed = base64.b64encode(value.encode()).decode()
    return [
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  value: {packed}\n",
        f"apiVersion: v1\ndata:\n  app: {packed}\nkind: Secret\nmetadata:\n  name: db\n",
        f"kind: Secret\nmetadata: {{name: db}}\nstringData:\n  value: '{value}'\n",
    ]


def named_no_secrets(*, held_out: bool) -> list[str]:
    """Return one half of the near misses of names, drawn by a seed before any rule was written.

    Args:
        held_out: the half on which nothing was tuned.
    """
    lines = Path(__file__).with_name("fixtures").joinpath("named_no_secrets.txt").read_text("utf-8")
    return [
        _filled(line)
        for line in lines.splitlines()
        if (sha256(f"held{line}".encode()).digest()[0] % 2 == 0) is held_out
    ]


_DRAWN: dict[str, Callable[[int], Draw]] = {
    "hex": lambda n: of(HEX, n),
    "HEX": lambda n: of(HEX.upper(), n),
    "b64": lambda n: of(B64, n),
    "url": lambda n: of(URL, n),
    "alnum": lambda n: of(ALNUM, n),
    "base58": lambda n: of(ALPHABETS["base58"], n),
    "uuid": lambda _: any_uuid,
    "fingerprint": lambda _: of(HEX.upper(), *[2] * 20, join=":"),
}


def _filled(line: str) -> str:
    r = random.Random(line)
    return re.sub(
        rf"\{{({'|'.join(_DRAWN)})(?::(\d+))?\}}",
        lambda match: _DRAWN[match[1]](int(match[2] or 0))(r),
        line.replace("\\n", "\n"),
    )
