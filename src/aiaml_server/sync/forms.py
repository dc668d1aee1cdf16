"""Forms of secrets, as their issuers describe them: a table, nothing else.

State of November 2026. Each row says whose secret it is, which literal text every one of them has
(`anchors`), the whole form from there on, and the title of the issuer's page that describes it.
Where a page gives a prefix but no length, the form allows for a wide range. Facts from these pages
only; rules of other scanners are not taken over. Every quantifier has an upper bound.

In a form, the group `(…)` is what must look drawn at random (see `leaks`).
"""

from __future__ import annotations

from typing import NamedTuple

ALNUM = "[A-Za-z0-9]"
URL = "[A-Za-z0-9_-]"  # the alphabet of base64 that is safe in addresses
HEX = "[0-9a-f]"
# Around what begins with three letters: in megabytes of base64, chance writes these as well.
ALONE = ("(?<![+/_-])", "(?![A-Za-z0-9+/=_-])")
UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


class Form(NamedTuple):
    """One form of secret.

    Attributes:
        name: what it is, as a person is told: "a GitHub token".
        anchors: texts of which every such secret has one.
        pattern: the form, as a regular expression.
        source: the title of the issuer's page.
        back: how many characters before the anchor the form begins.
        beside: the anchor is the secret's name, in lower case though it may stand in any, and the
            form is what follows: "name" directly (`secret_key = …`), "noun" with a word such as
            key or token between (`heroku api key: …`); empty where the secret is known by itself.
        left: whether the character before must not be a letter or digit.
        judge: how examples are told from secrets: "random", "password", "claims" or "".
    """

    name: str
    anchors: tuple[str, ...]
    pattern: str
    source: str
    back: int = 0
    beside: str = ""
    left: bool = True
    judge: str = "random"


def _named(name: str, anchors: tuple[str, ...], value: str, source: str) -> Form:
    """Return the form of a secret that has none of its own: a value beside its issuer's name."""
    return Form(name, anchors, value, source, beside="noun")


FORMS = (
    # --- keys in files ------------------------------------------------------------------------
    Form(
        "a private key", ("PRIVATE KEY",),
        r"PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr]|[>|#*\"',]){1,40}"
        r"(?:[A-Z][A-Za-z0-9-]{1,30}: [^\r\n\\]{0,200}(?:[\r\n]|\\[nr]){1,4}){0,6}"
        r"((?:[A-Za-z0-9+/=]{20,100}(?:\s|\\[nr]|[>|#*\"',]){0,20}){1,30})",
        "RFC 7468: Textual Encodings of PKIX, PKCS, and CMS Structures", left=False,
    ),
    Form(  # as it stands in a kubeconfig; the base64 of the five usual first lines
        "a private key",
        ("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
         "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0t", "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
         "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVkt"),
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{20,40}([A-Za-z0-9+/]{60,300})",
        "Kubernetes: Organizing Cluster Access Using kubeconfig Files", left=False,
    ),
    Form(
        "a PuTTY private key", ("PuTTY-User-Key-File-",),
        r"PuTTY-User-Key-File-[1-3]: [a-z0-9-]{3,30}\s{1,2}(?:[A-Z][A-Za-z-]{2,20}: [^\r\n]{0,200}"
        r"\s{1,2}|[A-Za-z0-9+/=]{1,64}\s{1,2}){1,60}Private-Lines: \d{1,3}\s{1,2}([A-Za-z0-9+/=]{40})",
        "PuTTY User Manual, Appendix C: PPK file format", judge="",
    ),
    Form(
        "an age secret key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-(?:PQ-)?1([A-Z0-9]{58,80})",
        "age: The age file encryption format (C2SP age)",
    ),
    Form(
        "a JSON Web Key", ('"d"', '"k"'), r'"[dk]"\s{0,4}:\s{0,4}"([A-Za-z0-9_-]{43,700})"',
        "RFC 7517: JSON Web Key", left=False,
    ),
    Form(
        "a WireGuard key", ("privatekey", "presharedkey"), r"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)",
        "wg(8): configuration file format", beside="name",
    ),
    Form(
        "a JSON Web Token", ("eyJ",),
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,1000}\.(eyJ[A-Za-z0-9_-]{10,6000}\.[A-Za-z0-9_-]{20,1000})",
        "RFC 7519: JSON Web Token", left=False, judge="claims",
    ),
    # --- clouds -------------------------------------------------------------------------------
    Form(
        "an AWS access key", ("AKIA", "ASIA"), r"A[KS]IA([A-Z2-7]{16})(?![A-Za-z0-9_])",
        "AWS IAM User Guide: IAM identifiers",
    ),
    Form(
        "an AWS secret key",
        ("secret_access_key", "secretaccesskey", "secret access key", "secret-access-key",
         "aws_secret", "awssecret", "aws secret", "secret_key", "secretkey"),
        r"[A-Za-z0-9/+]{40}",
        "AWS Security Blog: A safer way to distribute AWS credentials", beside="name",
    ),
    Form(
        "an AWS session token", ("session_token", "sessiontoken", "session token"),
        r"(?:IQoJb3JpZ2lu|FwoG|FQoG|AQo)[A-Za-z0-9/+=]{60,200}",
        "AWS IAM User Guide: Use temporary credentials", beside="name",
    ),
    Form(
        "an Amazon Bedrock key", ("ABSKQmVkcm9ja0FQSUtleS",),
        r"ABSKQmVkcm9ja0FQSUtleS([A-Za-z0-9+/=]{80,200})", "Amazon Bedrock: API keys",
    ),
    Form(
        "an Amazon MWS token", ("amzn.mws.",), rf"amzn\.mws\.({UUID})",
        "Amazon MWS Developer Guide: Authorization",
    ),
    Form(
        "an Amazon OAuth secret", ("amzn1.oa2-cs.v1.",), r"amzn1\.oa2-cs\.v1\.([a-f0-9]{64})",
        "Login with Amazon: Security profile",
    ),
    Form(
        "a Google API key", ("AIza",), rf"AIza({URL}{{35}})(?![A-Za-z0-9_-])",
        "Google Cloud: Manage API keys",
    ),
    Form(
        "a Google OAuth secret", ("GOCSPX-",), rf"GOCSPX-({URL}{{28}})(?![A-Za-z0-9_-])",
        "Google Cloud: Manage OAuth clients",
    ),
    Form(
        "a Google access token", ("ya29.",), r"ya29\.(?:[acd]\.)?([A-Za-z0-9_-]{30,1200})",
        "Google Identity: Using OAuth 2.0 to Access Google APIs",
    ),
    Form(
        "a Google refresh token", ("1//0",), r"1//0([A-Za-z0-9_-]{40,200})",
        "Google Identity: Using OAuth 2.0 to Access Google APIs",
    ),
    Form(
        "an Azure storage key", ("accountkey", "account_key", "account key", "storage_key"),
        r"[A-Za-z0-9+/]{86}==", "Microsoft Purview: Azure Storage account key",
        beside="name",
    ),
    Form(
        "an Azure shared access key", ("sharedaccesskey", "primarykey", "accesskey"),
        r"([A-Za-z0-9+/]{42,86}={1,2})",
        "Microsoft Purview: Azure Service Bus connection string", beside="name",
    ),
    Form(
        "an Azure shared access signature", ("sig=",),
        r"sig=((?:[A-Za-z0-9]|%2[BbFf]|[+/]){40,80}(?:%3[Dd]|=))",
        "Azure Storage: Create a service SAS",
    ),
    Form(
        "an Azure client secret", ("Q~",), r"([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])",
        "Microsoft Purview: Azure AD client secret", back=4,
    ),
    Form(
        "an Azure DevOps token", ("AZDO",), r"([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})(?![A-Za-z0-9])",
        "Azure DevOps: Use personal access tokens", back=76,
    ),
    Form(
        "an Azure AI key", ("JQQJ99",), r"([A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26})(?![A-Za-z0-9])",
        "Microsoft Security: Common annotated security keys", back=52,
    ),
    Form(
        "an Alibaba Cloud key", ("LTAI",), rf"LTAI({ALNUM}{{12,26}})(?![A-Za-z0-9])",
        "Alibaba Cloud RAM: Create an AccessKey pair",
    ),
    Form(
        "a Tencent Cloud key", ("AKID",), rf"AKID({ALNUM}{{32}})(?![A-Za-z0-9])",
        "Tencent Cloud CAM: Access keys",
    ),
    Form(
        "a Yandex Cloud key", ("AQVN", "YCA", "t1."),
        rf"(?:AQVN({URL}{{35,38}})|{ALONE[0]}YC[AMNOPQ]({URL}{{36,38}}){ALONE[1]}"
        rf"|t1\.[A-Z0-9a-z_-]{{1,300}}={{0,2}}\.({URL}{{86}})=)",
        "Yandex Cloud: Types of credentials",
    ),
    Form(
        "a DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), rf"do[opr]_v1_({HEX}{{64}})(?![A-Za-z0-9])",
        "DigitalOcean: API token formats",
    ),
    Form(
        "a Heroku key", ("HRKU-",), rf"HRKU-((?:{UUID})|AA[A-Za-z0-9_-]{{50,70}})",
        "Heroku Dev Center: API token format",
    ),
    _named("a Heroku key", ("heroku",), UUID, "Heroku Dev Center: Platform API, authentication"),
    Form(
        "a Scaleway key", ("scw_secret_key", "scaleway"), UUID, "Scaleway: API keys", beside="name",
    ),
    _named("a Cloudflare token", ("cloudflare", "cf_api"), rf"{URL}{{40}}|{HEX}{{37}}",
           "Cloudflare: Create API token; Global API key"),
    Form(
        "a Cloudflare origin key", ("v1.0-",), rf"v1\.0-({HEX}{{24}}-{HEX}{{146}})",
        "Cloudflare: Origin CA keys",
    ),
    _named("a Fastly token", ("fastly",), rf"{URL}{{32}}", "Fastly: Using API tokens"),
    Form(
        "a Fly.io token", ("fm1_", "fm2_", "fo1_"),
        r"(?:FlyV1 )?(?:fm[12]r?_([A-Za-z0-9+/=,_]{40,1500})|fo1_([A-Za-z0-9_-]{43}))",
        "Fly.io: Access tokens",
    ),
    Form(
        "a Netlify token", ("nfp_", "nfc_", "nfo_", "nfu_", "nfb_"), rf"nf[pcoub]_({ALNUM}{{36}})(?![A-Za-z0-9])",
        "Netlify: Token formats",
    ),
    Form(
        "a Vercel token", ("vcp_", "vca_", "vck_", "vci_", "vcr_"), rf"vc[pacikr]_({ALNUM}{{24,80}})(?![A-Za-z0-9])",
        "Vercel: Token formats",
    ),
    _named("a Vercel token", ("vercel",), rf"{ALNUM}{{24}}", "Vercel: Tokens"),
    Form(
        "a Render key", ("rnd_",), rf"rnd_({ALNUM}{{28,40}})(?![A-Za-z0-9])", "Render: API keys",
    ),
    _named("a Hetzner token", ("hetzner", "hcloud"), rf"{ALNUM}{{64}}", "Hetzner Cloud API: Getting started"),
    _named("a Linode token", ("linode",), rf"{HEX}{{64}}", "Linode API: Personal access tokens"),
    _named("a Vultr key", ("vultr",), r"[A-Z0-9]{36}", "Vultr API: Authentication"),
    _named("an IBM Cloud key", ("ibm", "bluemix"), rf"{URL}{{44}}", "IBM Cloud: Managing user API keys"),
    Form(
        "a Terraform token", ("atlasv1.",), rf"({ALNUM}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}})",
        "HCP Terraform: API tokens", back=15,
    ),
    Form(
        "a Vault token", ("hvs.", "hvb.", "hvr."), rf"hv[sbr]\.({URL}{{24,300}})",
        "Vault: Token prefixes",
    ),
    Form(
        "a HashiCorp client secret", ("hcp_client_secret", "vault_token"),
        rf"((?:s\.)?{URL}{{24,80}})", "Vault: Tokens", beside="name",
    ),
    Form("a Pulumi token", ("pul-",), rf"pul-({HEX}{{40}})(?![A-Za-z0-9])", "Pulumi Cloud: Access tokens"),
    Form(
        "a Doppler token", ("dp.",), rf"dp\.(?:pt|ct|st(?:\.[a-z0-9_-]{{2,35}})?|sa|said|scim|audit)\.({ALNUM}{{40,44}})(?![A-Za-z0-9])",
        "Doppler: Token formats",
    ),
    Form(
        "an Infisical token", ("st.",), rf"st\.({HEX}{{24}}\.{HEX}{{32}}\.{HEX}{{32}})", "Infisical: Service token",
    ),
    Form(
        "a 1Password token", ("ops_eyJ",), r"ops_eyJ([A-Za-z0-9_-]{200,1500}={0,2})",
        "1Password: Service accounts", judge="",
    ),
    Form(
        "a 1Password secret key", ("A3-",), r"A3-([A-Z0-9]{6}-(?:[A-Z0-9]{6}-[A-Z0-9]{5}|[A-Z0-9]{11})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5})",
        "1Password: About your Secret Key",
    ),
    Form(
        "a Bitwarden token", ("0.",), rf"0\.({UUID}\.{ALNUM}{{30}}:[A-Za-z0-9+/=]{{22,28}})", "Bitwarden Secrets Manager: Access tokens",
    ),
    Form("a Tailscale key", ("tskey-",), rf"tskey-(?:auth|api|client|scim|webhook)-({ALNUM}{{8,40}}-{ALNUM}{{20,60}})", "Tailscale: Key prefixes"),
    _named("an ngrok token", ("ngrok",), rf"[12]{ALNUM}{{26}}_{ALNUM}{{21}}", "ngrok: Authtokens"),
    _named("an Okta token", ("okta",), rf"00{URL}{{40}}", "Okta: Create an API token"),
    Form("an Okta token", ("ssws",), rf"(00{URL}{{40}})", "Okta: Create an API token", beside="name"),
    _named("an Auth0 secret", ("auth0",), rf"{URL}{{64}}", "Auth0: Application settings"),
    # --- code, packages, builds ---------------------------------------------------------------
    Form(
        "a GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_([A-Za-z0-9]{36,251})|github_pat_([A-Za-z0-9]{22}_[A-Za-z0-9]{59}))(?![A-Za-z0-9_])",
        "GitHub: About authentication to GitHub, token formats",
    ),
    Form(
        "a GitLab token",
        ("glpat-", "gloas-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-",
         "glagent-", "glwt-", "glsoat-", "glffct-"),
        r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|wt|soat|ffct)-((?:t[123]_|[0-9a-f]{1,4}_)?[A-Za-z0-9_-]{20,300}(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?)",
        "GitLab: Token overview, token prefixes",
    ),
    Form("a GitLab runner token", ("GR1348941",), rf"GR1348941({URL}{{20}})(?![A-Za-z0-9_-])", "GitLab: Token overview, token prefixes"),
    Form(
        "an Atlassian token", ("ATATT3", "ATCTT3", "ATSTT3"), r"AT[ACS]TT3([A-Za-z0-9_=-]{50,300})",
        "Atlassian: Manage API tokens",
    ),
    Form("a Bitbucket password", ("ATBB",), rf"ATBB({ALNUM}{{32}})(?![A-Za-z0-9])", "Bitbucket: App passwords"),
    Form("a Trello token", ("ATTA",), rf"ATTA({HEX}{{60,80}})(?![A-Za-z0-9])", "Trello: API introduction"),
    _named("a Jira token", ("jira", "atlassian", "confluence"), rf"{ALNUM}{{24}}", "Atlassian: Manage API tokens"),
    Form("an npm token", ("npm_",), rf"npm_({ALNUM}{{36}})(?![A-Za-z0-9])", "npm: About access tokens; GitHub blog on npm token formats"),
    Form("an npm token", ("_authtoken",), rf"[\"']?({UUID}|{URL}{{36,100}})", "npm: Using private packages in a CI/CD workflow", beside="name"),
    Form("a PyPI token", ("pypi-",), r"pypi-(Ag[A-Za-z0-9_-]{60,1000})", "PyPI: Help, API tokens"),
    Form("a RubyGems key", ("rubygems_",), rf"rubygems_({HEX}{{48}})(?![A-Za-z0-9])", "RubyGems guides: API key scopes"),
    Form("a crates.io token", ("cio",), rf"cio({ALNUM}{{32}})(?![A-Za-z0-9])", "crates.io source: token prefix and length"),
    Form("a NuGet key", ("oy2",), r"oy2([a-z0-9]{43})(?![A-Za-z0-9])", "Microsoft Purview: NuGet API key"),
    Form("a Clojars token", ("CLOJARS_",), rf"CLOJARS_({HEX}{{60}})(?![A-Za-z0-9])", "Clojars: Deploy tokens"),
    Form("a Docker token", ("dckr_pat_", "dckr_oat_"), rf"dckr_[po]at_({URL}{{27,40}})(?![A-Za-z0-9_-])", "Docker: Personal and organization access tokens"),
    Form("a registry password", ('"auth"',), r'"auth"\s{0,4}:\s{0,4}"([A-Za-z0-9+/]{20,400}={0,2})"', "Docker: config.json, credential store", left=False),
    Form("a JFrog key", ("AKCp", "cmVmdGtu"), rf"(?:AKCp({ALNUM}{{60,80}})|cmVmdGtu({ALNUM}{{56}}))(?![A-Za-z0-9])", "JFrog: API key; Reference tokens"),
    Form("a SonarQube token", ("squ_", "sqp_", "sqa_"), rf"sq[upa]_({HEX}{{40}})(?![A-Za-z0-9])", "SonarQube: Managing your tokens"),
    Form("a CircleCI token", ("CCIPAT_", "CCIPRJ_"), rf"CCIP(?:AT|RJ)_({ALNUM}{{20,30}}_{HEX}{{40}})", "CircleCI: Managing API tokens"),
    Form("a Buildkite token", ("bkua_", "bkaj_", "bkct_"), rf"bk(?:ua|aj|ct)_({ALNUM}{{40,80}})", "Buildkite: Token security"),
    Form("a Sourcegraph token", ("sgp_",), rf"sgp_((?:[0-9a-f]{{16}}_|local_)?{HEX}{{40}})(?![A-Za-z0-9])", "Sourcegraph: Access tokens"),
    Form("a Snyk token", ("snyk_uat.", "snyk_sat."), rf"snyk_[us]at\.({HEX}{{8}}\.[A-Za-z0-9_.-]{{40,120}})", "Snyk: Authentication for API"),
    _named("a Snyk token", ("snyk",), UUID, "Snyk: Authentication for API"),
    _named("a Travis token", ("travis",), rf"{URL}{{22}}", "Travis CI: API, authentication"),
    _named("a Codecov token", ("codecov",), rf"{UUID}|{HEX}{{32}}", "Codecov: Adding the Codecov token"),
    Form("a Postman key", ("PMAK-",), rf"PMAK-({HEX}{{24}}-{HEX}{{34}})(?![A-Za-z0-9])", "Postman: API keys"),
    Form("a Postman collection key", ("PMAT-",), r"PMAT-([0-9A-Z]{26})(?![A-Za-z0-9])", "Postman: Collection access keys"),
    Form("a Prefect key", ("pnu_", "pnb_"), rf"pn[ub]_({ALNUM}{{36}})(?![A-Za-z0-9])", "Prefect: API keys"),
    Form("a ReadMe key", ("rdme_",), r"rdme_([a-z0-9]{70})(?![A-Za-z0-9])", "ReadMe: API keys"),
    Form("a Figma token", ("figd_", "figu_", "figo_"), rf"fig[duo]_({URL}{{38,60}})", "Figma: Personal access tokens"),
    # --- models -------------------------------------------------------------------------------
    Form(
        "an OpenAI key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-service-"),
        rf"sk-(?:proj|svcacct|admin|None|service)-({URL}{{40,220}})", "OpenAI: API keys, Admin API keys",
    ),
    Form("an OpenAI key", ("T3BlbkFJ",), rf"sk-({ALNUM}{{20}}T3BlbkFJ{ALNUM}{{20}})(?![A-Za-z0-9])", "OpenAI: API keys", back=23),
    Form("an Anthropic key", ("sk-ant-",), rf"sk-ant-(?:[a-z]{{2,12}}\d\d-)({URL}{{40,160}})", "Anthropic: API overview, authentication"),
    Form("an OpenRouter key", ("sk-or-v1-",), rf"sk-or-v1-({HEX}{{64}})(?![A-Za-z0-9])", "OpenRouter: Authentication"),
    Form("a Langfuse key", ("sk-lf-",), rf"sk-lf-({UUID})", "Langfuse: API authentication"),
    Form("an API key of an AI service", ("sk-",), r"sk-([a-z0-9]{32}|[A-Za-z0-9]{48})(?![A-Za-z0-9_-])", "DeepSeek API: Your first API call"),
    Form("an xAI key", ("xai-",), rf"xai-({ALNUM}{{70,90}})(?![A-Za-z0-9])", "xAI: API, authentication"),
    Form("a Groq key", ("gsk_",), rf"gsk_({ALNUM}{{48,56}})(?![A-Za-z0-9])", "Groq: API keys"),
    Form("a Perplexity key", ("pplx-",), rf"pplx-({ALNUM}{{46,56}})(?![A-Za-z0-9])", "Perplexity: API keys"),
    Form("a Replicate token", ("r8_",), rf"r8_({ALNUM}{{37}})(?![A-Za-z0-9])", "Replicate: API tokens"),
    Form("a Hugging Face token", ("hf_", "api_org_"), rf"(?:hf|api_org)_({ALNUM}{{34,40}})(?![A-Za-z0-9])", "Hugging Face: User access tokens"),
    Form("a Cerebras key", ("csk-",), r"csk-([a-z0-9]{40,60})(?![A-Za-z0-9])", "Cerebras Inference: API keys"),
    Form("an NVIDIA key", ("nvapi-",), rf"nvapi-({URL}{{60,70}})(?![A-Za-z0-9_-])", "NVIDIA: API keys"),
    Form("a Fireworks key", ("fw_",), rf"fw_({ALNUM}{{22,30}})(?![A-Za-z0-9])", "Fireworks AI: API keys"),
    Form("a Together key", ("tgp_v1_",), rf"tgp_v1_({URL}{{43}})(?![A-Za-z0-9_-])", "Together AI: API keys"),
    Form("a LangSmith key", ("lsv2_pt_", "lsv2_sk_"), rf"lsv2_(?:pt|sk)_({HEX}{{32}}_{HEX}{{10}})(?![A-Za-z0-9])", "LangSmith: Create an API key"),
    Form("a Pinecone key", ("pcsk_",), r"pcsk_([A-Za-z0-9_]{60,80})", "Pinecone: API keys"),
    Form("a Tavily key", ("tvly-",), r"tvly-(?:dev-|prod-)?([A-Za-z0-9]{30,40})(?![A-Za-z0-9])", "Tavily: API reference"),
    Form("a Firecrawl key", ("fc-",), rf"fc-({HEX}{{32}})(?![A-Za-z0-9])", "Firecrawl: API reference"),
    Form("an ElevenLabs key", ("sk_",), rf"sk_({HEX}{{48}})(?![A-Za-z0-9])", "ElevenLabs: API authentication"),
    _named("a Mistral key", ("mistral",), rf"{ALNUM}{{32}}", "Mistral AI: API keys"),
    _named("a Cohere key", ("cohere", "co_api"), rf"{ALNUM}{{40}}", "Cohere: API keys"),
    _named("a Deepgram key", ("deepgram",), rf"{HEX}{{40}}", "Deepgram: Authentication"),
    _named("a Weights & Biases key", ("wandb",), rf"{HEX}{{40}}", "Weights & Biases: API keys"),
    # --- data ---------------------------------------------------------------------------------
    Form(
        "a password in an address", ("://",),
        r"://[^\s:/@\"'<>`$({\[]{0,64}:([^\s:/@\"'<>`${}()\[\]*]{6,128})@[A-Za-z0-9.\[-]{3,253}",
        "RFC 3986: URI generic syntax, user information", left=False, judge="password",
    ),
    Form(
        "a password in an address", ("jdbc:",),
        r"jdbc:[a-z0-9:]{2,40}//[^\s\"'<>`]{1,200}?[?&;]password=([^\s&;\"'<>`${}()\[\]*]{6,128})",
        "PostgreSQL JDBC Driver: Connecting to the Database", left=False, judge="password",
    ),
    Form(
        "a password for a machine", ("machine ",),
        r"machine [^\s]{1,200}\s{1,9}login\s{1,9}[^\s]{1,200}\s{1,9}password\s{1,9}([^\s<>${}]{6,128})",
        "The .netrc file: GNU Inetutils manual", judge="password",
    ),
    Form(
        "an authorization header", ("Bearer ", "bearer ", "Basic ", "basic "),
        r"(?:[Bb]earer|[Bb]asic) {1,4}(?=[^\s0-9]{0,80}[0-9])(?=[^\sA-Z]{0,80}[A-Z])"
        r"([A-Za-z0-9+/_.~-]{20,400})",
        "RFC 7617: The 'Basic' HTTP Authentication Scheme; RFC 6750: Bearer Token Usage",
    ),
    Form("a Databricks token", ("dapi",), rf"dapi({HEX}{{32}})(?:-\d)?(?![A-Za-z0-9])", "Databricks: Personal access tokens"),
    Form("a Supabase key", ("sbp_", "sb_secret_"), rf"(?:sbp_(?:v0_)?({HEX}{{40}})|sb_secret_({URL}{{22,60}}))(?![A-Za-z0-9])", "Supabase: Understanding API keys; Access tokens"),
    Form("a PlanetScale token", ("pscale_",), r"pscale_(?:tkn|pw|oauth|app_secret)_([A-Za-z0-9_.=-]{32,64})", "PlanetScale: Service tokens"),
    Form("a Neon key", ("napi_",), r"napi_([a-z0-9]{60,70})(?![A-Za-z0-9])", "Neon: Manage API keys"),
    Form("a MongoDB Atlas secret", ("mdb_sa_sk_",), rf"mdb_sa_sk_({URL}{{40}})", "MongoDB Atlas: Service accounts"),
    _named("a Confluent secret", ("confluent",), r"[A-Za-z0-9+/]{64}|[A-Z0-9]{16}", "Confluent Cloud: API keys"),
    Form("a Confluent secret", ("cflt",), r"cflt([A-Za-z0-9+/]{60})(?![A-Za-z0-9+/])", "Confluent Cloud: API keys"),
    _named("an Algolia key", ("algolia",), rf"{HEX}{{32}}", "Algolia: API keys"),
    Form("an Airtable token", ("pat",), rf"pat({ALNUM}{{14}}\.{HEX}{{64}})(?![A-Za-z0-9])", "Airtable: Personal access tokens"),
    Form("a Contentful token", ("CFPAT-",), rf"CFPAT-({URL}{{43}})(?![A-Za-z0-9_-])", "Contentful: Personal access tokens"),
    Form("a Mapbox token", ("sk.eyJ",), rf"sk\.eyJ({URL}{{50,300}}\.{URL}{{20,40}})", "Mapbox: Access tokens"),
    _named("an Elastic key", ("elastic",), r"[A-Za-z0-9_-]{58}==|[A-Za-z0-9+/]{58}==", "Elasticsearch: Create API key"),
    Form("a dbt token", ("dbtc_", "dbtu_", "dbts_"), rf"dbt[cus]_({URL}{{30,60}})", "dbt: API tokens"),
    # --- messages -----------------------------------------------------------------------------
    Form(
        "a Slack token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xoxe."),
        r"xox(?:[abcdeoprs]-|e\.xox[bp]-)((?:\d{1,15}-){1,4}[A-Za-z0-9-]{16,250}|[A-Za-z0-9%/+=-]{40,300})", "Slack: Token types",
    ),
    Form("a Slack token", ("xapp-",), r"xapp-\d-([A-Z0-9]{8,14}-\d{8,16}-[a-f0-9]{40,80})", "Slack: Token types"),
    Form("a Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services/T\w{8,14}/B\w{8,14}/|workflows/T\w{8,14}/A\w{8,14}/\d{10,25}/|triggers/[TE]\w{8,14}/\d{10,25}/)([A-Za-z0-9]{24,40})", "Slack: Sending messages using incoming webhooks"),
    Form("a Discord token", ("M", "N", "O"), rf"([MNO]{ALNUM}{{23,27}}\.{URL}{{6}}\.{URL}{{27,40}})(?![A-Za-z0-9_-])", "Discord: API reference, authentication"),
    Form("a Discord webhook", ("/api/webhooks/",), rf"/api/webhooks/\d{{17,20}}/({URL}{{60,80}})", "Discord: Webhook resource", left=False),
    Form("a Microsoft Teams webhook", ("webhook.office.com/",), rf"webhook\.office\.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/({HEX}{{32}})/{UUID}", "Microsoft Teams: Create incoming webhooks"),
    Form("a Telegram bot token", (":AA",), rf"(?<=[0-9]{{8}}):(AA{URL}{{33}})(?![A-Za-z0-9_-])", "Telegram: Bot API, authorizing your bot", left=False),
    Form("a Twilio key", ("SK",), rf"SK({HEX}{{32}})(?![A-Za-z0-9])", "Twilio: API keys"),
    _named("a Twilio token", ("twilio",), rf"{HEX}{{32}}", "Twilio: Auth tokens and how to change them"),
    Form("a SendGrid key", ("SG.",), rf"SG\.({URL}{{22}}\.{URL}{{43}})(?![A-Za-z0-9_-])", "Twilio SendGrid: API keys"),
    Form("a Mailgun key", ("key-",), rf"key-({HEX}{{32}})(?![A-Za-z0-9])", "Mailgun: API keys"),
    _named("a Mailgun key", ("mailgun",), rf"{HEX}{{32}}-{HEX}{{8}}-{HEX}{{8}}|{HEX}{{32}}", "Mailgun: API keys"),
    Form("a Mailchimp key", ("-us",), rf"({HEX}{{32}}-us\d{{1,2}})(?![A-Za-z0-9])", "Mailchimp: About API keys", back=32),
    Form("a Brevo key", ("xkeysib-", "xsmtpsib-"), rf"x(?:key|smtp)sib-({HEX}{{64}}-{ALNUM}{{16}})(?![A-Za-z0-9])", "Brevo: API keys"),
    Form("a Resend key", ("re_",), rf"re_({ALNUM}{{8}}_{ALNUM}{{24}})(?![A-Za-z0-9])", "Resend: API keys"),
    _named("a Postmark token", ("postmark",), UUID, "Postmark: API authentication"),
    # --- money --------------------------------------------------------------------------------
    Form("a Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), rf"[rs]k_(?:live|test)_({ALNUM}{{24,247}})(?![A-Za-z0-9])", "Stripe: API keys"),
    Form("a Stripe webhook secret", ("whsec_",), r"whsec_([A-Za-z0-9+/=]{32,90})", "Stripe: Webhooks, signing secrets; Standard Webhooks"),
    Form("a Square token", ("sq0atp-", "sq0csp-", "EAAA"), rf"(?:sq0atp-({URL}{{22}})|sq0csp-({URL}{{43}})|EAAA[ElE]({URL}{{55,64}}))(?![A-Za-z0-9_-])", "Square: Access tokens and other credentials"),
    Form("a Braintree token", ("access_token$",), r"access_token\$(?:production|sandbox)\$([0-9a-z]{16}\$[0-9a-f]{32})", "Braintree: Credentials"),
    _named("a PayPal secret", ("paypal",), rf"E{URL}{{79}}", "PayPal: Get started, client secret"),
    Form("a Plaid token", ("access-",), rf"access-(?:production|development|sandbox)-({UUID})", "Plaid: Tokens"),
    _named("a Plaid secret", ("plaid",), rf"{HEX}{{30}}", "Plaid: API keys"),
    Form("a Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_"), r"shp(?:at|ca|pa|ss|ua)_([0-9a-fA-F]{32})(?![A-Za-z0-9])", "Shopify: Token formats"),
    Form("a Razorpay key", ("rzp_live_", "rzp_test_"), rf"rzp_(?:live|test)_({ALNUM}{{14}})(?![A-Za-z0-9])", "Razorpay: API keys"),
    Form("a Flutterwave key", ("FLWSECK",), r"FLWSECK(?:_TEST)?-([0-9a-zA-Z]{32}(?:-[0-9a-z]{10,12})?-X)", "Flutterwave: API keys"),
    Form("a payment key", ("live_", "test_"), r"(?:live|test)_([A-Za-z0-9]{30,43})(?![A-Za-z0-9_])", "Mollie: Authentication; Lob: API keys; GoCardless: Access tokens"),
    Form("an Adyen key", ("AQE",), r"AQE[a-zA-Z0-9]{1,3}([A-Za-z0-9+/]{60,200}={0,2}-[A-Za-z0-9+/=]{30,60}-[A-Za-z0-9()<>{}\[\].,:;?!@#$%^&*+~|]{10,30})", "Adyen: API credentials"),
    Form("an EasyPost key", ("EZAK", "EZTK"), rf"EZ[AT]K({ALNUM}{{54}})(?![A-Za-z0-9])", "EasyPost: Authentication"),
    Form("a Duffel or Shippo token", ("duffel_", "shippo_"), r"(?:duffel|shippo)_(?:live|test)_([A-Za-z0-9_=-]{40,50})", "Duffel: Authentication; Shippo: Authentication"),
    _named("a Coinbase secret", ("coinbase",), rf"{ALNUM}{{32}}|{ALNUM}{{64}}|[A-Za-z0-9+/]{{86}}==", "Coinbase: API key authentication"),
    # --- watching -----------------------------------------------------------------------------
    _named("a Datadog key", ("datadog", "dd_api", "dd_app", "dd-api", "dd-app"), rf"{HEX}{{40}}|{HEX}{{32}}", "Datadog: API and application keys"),
    Form("a Datadog token", ("ddapp_", "ddpat_", "ddsat_"), rf"dd(?:app|pat|sat)_({ALNUM}{{34,60}})", "Datadog: API and application keys"),
    Form("a Sentry token", ("sntrys_", "sntryu_", "sntrya_", "sntryi_"), rf"sntry(?:[uai]_({HEX}{{64}})|s_eyJ([A-Za-z0-9+/=_-]{{80,400}}))", "Sentry: Auth tokens"),
    _named("a Sentry token", ("sentry",), rf"{HEX}{{64}}", "Sentry: Auth tokens"),
    Form("a New Relic key", ("NRAK-", "NRII-", "NRAA-", "NRRA-", "NRJS-"), r"NR(?:AK-([A-Z0-9]{27})|II-([A-Za-z0-9_-]{32})|AA-([a-f0-9]{27})|RA-([a-f0-9]{42})|JS-([a-f0-9]{19}))(?![A-Za-z0-9])", "New Relic: API keys"),
    Form("a New Relic key", ("NRAL",), r"([0-9a-f]{36}NRAL)(?![A-Za-z0-9])", "New Relic: License key", back=36),
    Form("a Grafana token", ("glsa_", "glc_eyJ", "eyJrIjoi"), r"(?:glsa_([A-Za-z0-9]{32}_[0-9a-fA-F]{8})|glc_(eyJ[A-Za-z0-9+/=]{60,500})|(eyJrIjoi[A-Za-z0-9+/=]{60,400}))(?![A-Za-z0-9])", "Grafana: Service account tokens; Cloud access policies"),
    Form("a Dynatrace token", ("dt0c01.", "dt0s01.", "dt0s02.", "dt0s16."), r"dt0[cs][0-9]{2}\.([A-Z0-9]{8,24}\.[A-Z0-9]{64})(?![A-Za-z0-9])", "Dynatrace: Access tokens, token format"),
    Form("a Honeycomb key", ("hcaik_", "hcamk_", "hcxik_"), r"hc[abx][im]k_([a-z0-9]{58,64})(?![A-Za-z0-9])", "Honeycomb: API keys"),
    Form("a PostHog key", ("phx_",), rf"phx_({ALNUM}{{40,52}})(?![A-Za-z0-9])", "PostHog: API overview"),
    Form("a LaunchDarkly key", ("sdk-", "api-"), rf"(?:sdk|api)-({UUID})(?![A-Za-z0-9-])", "LaunchDarkly: API access tokens"),
    _named("a PagerDuty key", ("pagerduty", "pd_api"), r"[a-z]\+[A-Za-z0-9_-]{18}|[A-Za-z0-9_+-]{20}|[0-9a-f]{32}", "PagerDuty: API access keys"),
    Form("a StackHawk key", ("hawk.",), rf"hawk\.({URL}{{20}}\.{URL}{{20}})(?![A-Za-z0-9_-])", "StackHawk: API keys"),
    # --- work and home ------------------------------------------------------------------------
    Form("a Notion token", ("ntn_", "secret_"), rf"(?:ntn_([0-9]{{11}}{ALNUM}{{35}})|secret_({ALNUM}{{43}}))(?![A-Za-z0-9])", "Notion: Authorization, token formats"),
    Form("a Linear key", ("lin_api_", "lin_oauth_", "lin_wh_"), r"lin_(?:api_([A-Za-z0-9]{40})|oauth_([a-f0-9]{64})|wh_([A-Za-z0-9]{40}))(?![A-Za-z0-9])", "Linear: API authentication"),
    Form("an Asana token", ("1/", "2/"), rf"[12]/(\d{{13,18}}(?:/\d{{13,18}})?:{HEX}{{32}})(?![A-Za-z0-9])", "Asana: Personal access token"),
    Form("a ClickUp token", ("pk_",), r"pk_(\d{6,10}_[A-Z0-9]{32})(?![A-Za-z0-9])", "ClickUp: Authentication"),
    Form("a HubSpot token", ("pat-",), rf"pat-(?:na|eu|ap)\d-({UUID})", "HubSpot: Private apps"),
    Form("a Typeform token", ("tfp_",), r"tfp_([A-Za-z0-9_.=-]{40,70})(?![A-Za-z0-9+/=_-])", "Typeform: Personal access tokens"),
    Form("a Dropbox token", ("sl.",), rf"sl\.(?:u\.)?({URL}{{120,1500}})", "Dropbox: OAuth guide, short-lived tokens"),
    Form("a Salesforce token", ("00D",), r"00D([A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,120})", "Salesforce: Session ids and access tokens"),
    Form("a Facebook token", ("EAA",), rf"{ALONE[0]}EAA({ALNUM}{{90,300}}){ALONE[1]}", "Meta: Access tokens"),
    Form("an Instagram token", ("IGQV", "IGQW", "IGAA"), rf"IG(?:Q[VW]|AA)({URL}{{100,250}})", "Meta: Instagram Platform, access tokens"),
    _named("a Facebook secret", ("facebook", "fb_app"), rf"{HEX}{{32}}", "Meta: App secret"),
    Form("a Twitter bearer token", ("AAAAAAAAAAAAAAAAAAAAA",), r"A{21,24}([A-Za-z0-9]{10,30}(?:%[0-9A-F]{2}|[A-Za-z0-9]){30,120})(?![A-Za-z0-9])", "X: OAuth 2.0 bearer token"),
    _named("a Twitter secret", ("twitter",), rf"{ALNUM}{{45,50}}|\d{{15,20}}-{ALNUM}{{40}}", "X: OAuth 1.0a, API keys"),
    _named("a Spotify secret", ("spotify",), rf"{HEX}{{32}}", "Spotify: Client credentials"),
    _named("a LinkedIn secret", ("linkedin",), r"WPL_AP1\.[A-Za-z0-9+/=.]{20,40}|[A-Za-z0-9]{16}", "LinkedIn: Authentication"),
    _named("a Twitch secret", ("twitch",), r"[a-z0-9]{30}", "Twitch: Authentication"),
    _named("a Zendesk token", ("zendesk",), rf"{ALNUM}{{40}}", "Zendesk: API token"),
    _named("a Todoist token", ("todoist",), rf"{HEX}{{40}}", "Todoist: Authorization"),
    _named("a Zoom secret", ("zoom",), rf"{ALNUM}{{32}}", "Zoom: App credentials"),
    _named("an Intercom token", ("intercom",), r"[A-Za-z0-9=_-]{60}", "Intercom: Authentication"),
    Form("an Adafruit IO key", ("aio_",), rf"aio_({ALNUM}{{28}})(?![A-Za-z0-9])", "Adafruit IO: API security"),
    Form("a Frame.io token", ("fio-u-",), rf"fio-u-({URL}{{64}})", "Frame.io: Developer tokens"),
    Form("a Cloudinary address", ("cloudinary://",), rf"cloudinary://\d{{12,18}}:({URL}{{24,30}})@", "Cloudinary: API environment variable"),
    Form("an Onfido token", ("api_live.", "api_sandbox."), rf"api_(?:live|sandbox)(?:_[a-z]{{2}})?\.({URL}{{11}}\.{URL}{{32}})", "Onfido: API tokens"),
    _named("an OpenWeather key", ("openweather", "owm_"), rf"{HEX}{{32}}", "OpenWeather: API keys"),
    _named("an Adobe secret", ("adobe",), rf"p8e-{URL}{{32}}|{HEX}{{32}}", "Adobe: Credentials"),
    Form("an Adobe secret", ("p8e-",), rf"p8e-({URL}{{32}})(?![A-Za-z0-9_-])", "Adobe Developer: Credentials"),
)  # fmt: skip
