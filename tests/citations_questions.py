"""Memories of two code bases, and questions about them in other words.

The search was made with the first question of each; at the second, only the sum was looked at.
"""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """A memory and two questions that it answers.

    Attributes:
        subject: of the memory.
        fact: what it states.
        cites: a path and a line of code.
        first: a question that the search was made with.
        blind: one that it was not.
    """

    subject: str
    fact: str
    cites: tuple[str, str]
    first: str
    blind: str


def _asked(subject: str, fact: str, path: str, line: str, first: str, blind: str) -> Asked:
    return Asked(subject, fact, (path, line), first, blind)


ASKED = (
    _asked("GZip skips small bodies", "Responses below 500 bytes are sent as they are.",
           "starlette/middleware/gzip.py", "minimum_size: int = 500, compresslevel: int = 9",
           "compression threshold", "at which length does deflating begin"),
    _asked("Environment wins over .env file", "os.environ is looked at before what the file has.",
           "starlette/config.py", "if key in self.environ:",
           "dotenv precedence", "which source of settings has priority"),
    _asked("SpatiaLite is looked for in fixed paths", "find_spatialite tries a list of libraries.",
           "sqlite_utils/utils.py", "SPATIALITE_PATHS = (",
           "geo extension location", "where do GIS modules get loaded from"),
    _asked("CSV columns are detected by content", "TypeTracker guesses integer, float or text.",
           "sqlite_utils/utils.py", "class TypeTracker:",
           "type inference of comma separated values", "how are numbers recognized on import"),
    _asked("BackgroundTasks run after the response", "They are awaited once the body was sent.",
           "starlette/responses.py", "await self.background()",
           "when do deferred jobs start", "does work in the background delay the client"),
    _asked("Session cookie is signed, not encrypted", "itsdangerous signs it; anybody can read it.",
           "starlette/middleware/sessions.py", "self.signer = itsdangerous.TimestampSigner(secret)",
           "can users see what is in their session", "is session data confidential"),
    _asked("Routes are tried in order", "The first full match wins; partial ones answer 405.",
           "starlette/routing.py", "match, child_scope = route.matches(scope)",
           "which handler is chosen if two urls fit", "why do I get method not allowed"),
    _asked("TestClient raises server exceptions", "raise_server_exceptions is true by default.",
           "starlette/testclient.py", "raise_server_exceptions: bool = True,",
           "errors in tests are not turned into 500", "how to check an error page in a unit test"),
    _asked("StaticFiles refuses symlinks", "follow_symlink is false, so links answer 404.",
           "starlette/staticfiles.py", "follow_symlink: bool = False,",
           "linked assets are not found", "serving files behind a soft link"),
    _asked("Upload spools to disk above 1 MB", "SpooledTemporaryFile keeps small parts in memory.",
           "starlette/formparsers.py", "spool_max_size = 1024 * 1024",
           "memory use of large file uploads", "when does a multipart part go to a temporary file"),
    _asked("Lifespan replaces on_startup", "Both cannot be given; the old handlers are deprecated.",
           "starlette/routing.py", "assert lifespan is None or (on_startup is None",
           "how to run code when the app boots", "deprecated startup hooks"),
    _asked("CORS wildcard is off with credentials", "The origin is mirrored when cookies are sent.",
           "starlette/middleware/cors.py", "if self.allow_all_origins and has_cookie:",
           "cross origin request with cookie", "why is the Access-Control header not a star"),
    _asked("Middleware order is reversed", "The last one that was added sees the request first.",
           "starlette/applications.py", "for cls, options in reversed(middleware):",
           "which layer runs outermost", "sequence in which wrappers are applied"),
    _asked("Request body is read once", "stream() raises after the body was consumed.",
           "starlette/requests.py", 'raise RuntimeError("Stream consumed")',
           "reading the payload twice fails", "can I consume the stream again"),
    _asked("Websocket close code defaults to 1000", "close() without arguments is a normal end.",
           "starlette/websockets.py", "async def close(self, code: int = 1000",
           "what number is sent when a socket ends", "status of a finished ws connection"),
    _asked("upsert needs a primary key", "PrimaryKeyRequired is raised where pk is missing.",
           "sqlite_utils/db.py", 'raise PrimaryKeyRequired("upsert() requires a pk")',
           "insert or update without id", "merging rows fails with no key column"),
    _asked("Batches are 100 rows", "insert_all commits after each; batch_size changes it.",
           "sqlite_utils/db.py", "DEFAULT_BATCH = 100",
           "how many records are written at a time", "chunk length of bulk inserts"),
    _asked("SQLite allows 999 variables", "The batch shrinks so that a statement has fewer.",
           "sqlite_utils/db.py", "SQLITE_MAX_VARS = 999",
           "limit of parameters in a query", "too many placeholders"),
    _asked("alter adds missing columns", "Unknown keys of a record raise unless alter is true.",
           "sqlite_utils/db.py", 'if alter and (" column" in e.args[0]):',
           "schema changes by themselves on new fields", "record has an attribute the table lacks"),
    _asked("FTS triggers are opt in", "enable_fts needs create_triggers to stay up to date.",
           "sqlite_utils/db.py", "create_triggers=False,",
           "full text index is outdated after insert", "keep search in sync with the table"),
    _asked("transform copies the whole table", "It makes a new one, moves the rows and renames it.",
           "sqlite_utils/db.py", "def transform_sql(",
           "how is a column type altered", "cost of changing the schema of a big table"),
    _asked("hash_id is SHA1 of the row", "Keys are sorted, so the order of fields is irrelevant.",
           "sqlite_utils/utils.py", "return hashlib.sha1(",
           "identifier made of content", "primary key from a digest"),
    _asked("Nested JSON is stored as text", "dict and list values are dumped before insertion.",
           "sqlite_utils/db.py", "return json.dumps(value, default=repr",
           "saving a dictionary in a cell", "how are arrays kept in the database"),
    _asked("Counts may be cached", "use_counts_table reads from _counts, which triggers fill.",
           "sqlite_utils/db.py", "self.use_counts_table = use_counts_table",
           "number of rows is slow", "fast total of a table"),
    _asked("WAL is a property of the file", "enable_wal changes it for all later connections.",
           "sqlite_utils/db.py", 'self.execute("PRAGMA journal_mode=wal;")',
           "write ahead log setting persists", "journal mode of the db"),
    _asked("rows_from_file sniffs the format", "JSON starts with a bracket; else CSV is tried.",
           "sqlite_utils/utils.py", "first_bytes = buffered.peek(2048).strip()",
           "how is the kind of an input determined", "automatic detection of what is piped in"),
    _asked("convert runs code that users give", "It is compiled and executed, so trust the input.",
           "sqlite_utils/utils.py", "exec(code_o, globals_dict)",
           "security of the conversion command", "is arbitrary python run from the shell"),
    _asked("Templates need request in context", "url_for in a template fails without it.",
           "starlette/templating.py", 'if "request" not in context:',
           "jinja cannot build a link", "rendering html raises ValueError"),
    _asked("HTTPException detail is plain text", "The default handler sends no JSON.",
           "starlette/middleware/exceptions.py", "return PlainTextResponse(exc.detail",
           "format of error answers", "why is the body of a 404 not json"),
    _asked("CI runs on 3.8 to 3.12", "v2 of the workflow has a matrix; coverage must be 100.",
           ".github/workflows/test-suite.yml", 'python-version: ["3.8", "3.12"]',
           "ci versions", "supported interpreters in the pipeline v2"),
)  # fmt: skip

WORDS = {
    "first": """
        gzip minimum size bytes small responses compress middleware 500 body
        .env file environment variable wins override config environ before default
        spatialite path library find load extension sqlite geospatial gis
        csv detect types integer float text guess column convert tracker
        background task after response sent await run later client
        cookie session signed encrypted readable secret client base64 tampering
        route match first order routing path path full partial declared
        testclient raise_server_exceptions exception raised test client debug handler
        staticfiles symlink follow directory link 404 file security
        multipart spool disk temporary file size upload max memory limit
        lifespan startup on_startup event context manager shutdown deprecated
        cors credentials allow_origins wildcard header middleware cookie origin
        middleware order stack outermost first added reversed last wrap
        request body stream consumed receive cached read once error
        websocket close code 1000 status disconnect default 1006
        upsert primary key pk required record insert replace error
        batch size rows insert 100 bulk commit chunk default
        sqlite variables 999 sql maximum parameters placeholders limit
        alter add columns missing automatically insert table new
        fts triggers enable create rebuild populate search sync
        transform table copy new rename column type drop schema
        hash id sha1 pk primary key content row digest
        json dict nested serialize text column store string list
        count cached table triggers slow rows use_counts total
        wal journal_mode file persistent sqlite enable database pragma
        format sniff detect rows_from_file json csv tsv first bytes
        convert python code eval exec unsafe untrusted run lambda
        url_for template request context jinja2 missing render key error
        httpexception detail text plain json handler exception response body
        python versions ci matrix workflow github actions test
    """,
    "blind": """
        gzip compression compress minimum size bytes threshold body response middleware small
        environment variable environ env file config precedence override wins default starlette
        spatialite geo extension library path find load dll sqlite spatial
        csv type detect integer float text guess convert column tracker
        background task response after sent await run blocking client finish
        cookie signed encrypted secret readable secure sign session itsdangerous base64
        405 route match methods partial path handler get post routing
        testclient raise server exceptions 500 error handler response false debug
        staticfiles symlink follow link directory file 404 false security
        upload spool file size memory disk multipart form temporary max
        lifespan on_startup on_event startup shutdown deprecated event handler context
        cors allow origin credentials cookie wildcard header middleware request
        middleware order stack reversed first last outermost add wrap
        request body stream consumed read once twice error cached receive
        websocket close code 1000 state disconnect status closed default
        upsert primary key pk required error insert record id
        batch size rows insert 100 bulk chunk many transaction
        sql variables limit 999 sqlite max parameters too many batch
        alter column missing add insert table true error new
        fts full-text search trigger enable create index update sync
        transform table copy alter rename drop column new slow rewrite
        hash id sha1 pk primary key content record hashed row
        json list dict serialize text column store nested array string
        count cached triggers counts table rows use_counts fast
        wal journal write-ahead mode enable file persistent sqlite pragma
        format sniff detect json csv tsv rows_from_file stdin peek
        convert code eval exec python lambda command unsafe security
        template jinja url_for request context missing key render ValueError
        httpexception detail plain text exception handler response error json 404
        ci python versions matrix github actions test workflow
    """,
}
"""What the tool asks agents for, behind each question; its author had seen half of the memories."""
