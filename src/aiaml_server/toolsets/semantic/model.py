"""The model that turns text into vectors: found here, else fetched, loaded while nobody waits.

Nothing heavy is imported, nothing read and no socket opened before `ready` is asked. A model is
loaded, and fetched where it is not here yet, by a daemon thread; whoever asks meanwhile gets None,
and a sentence that says how it stands.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import re
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from aiaml_server.errors import AiamlError
from aiaml_server.files import make_own_directory, read_own, remove_own, replace_atomic
from aiaml_server.toolset import Embedder as AnyEmbedder
from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.semantic import config, place
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.families import Prefixes, calibrated, prefixes

CACHE = "models"  # in a person's directory, what was fetched
FETCH = "aiaml semantic fetch"
_WITHOUT_HUB = (
    "without a way there, HF_ENDPOINT can name a mirror, or {} a folder with an .onnx file,"
    " tokenizer.json and tokenizer_config.json"
)
AGAIN_SECONDS = 300.0  # between two tries to fetch
_HUB_SECONDS = 20.0  # that a hub may be silent
LOAD_SECONDS = 30.0  # that loading takes on a slow machine, and may hold up a process's end
_NEEDED = ("tokenizer.json", "tokenizer_config.json")
_OPTIONAL = ("config.json", "special_tokens_map.json")
_LIST = "aiaml-model.json"  # what was fetched, with sizes; written last
_LIST_MOST = 64 * 1024
_BATCH = 16  # texts at once: 512 tokens of each take 200 MB
_NAME = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?")
_SIZES = {"BAAI/bge-small-en-v1.5": 67_000_000}
"""Bytes of what is fetched by default, for who wants to know before fastembed is imported."""

Kind = Literal["ready", "loading", "missing", "downloading", "failed", "off"]


Loaded = TypeVar("Loaded")
Described = dict[str, Any]
"""What fastembed says of a model."""


class Embedder(AnyEmbedder, Protocol):
    """A model that is loaded.

    Attributes:
        dimension: the numbers in a vector.
    """

    dimension: int


class State(NamedTuple):
    """How it stands with the model.

    Attributes:
        kind: in a word.
        reason: why there is none; empty where all is well.
        remedy: what to do about it, if something is to be done.
        done: bytes that are here, of what is fetched.
        total: bytes that it has; 0 where that is not known yet.
    """

    kind: Kind
    reason: str = ""
    remedy: str = ""
    done: int = 0
    total: int = 0

    @property
    def why(self) -> str:
        """The reason with its remedy."""
        return "; ".join(filter(None, (self.reason, self.remedy)))

    @property
    def sentence(self) -> str:
        """What an answer's warnings say of it; empty where all is well."""
        so_far = " for now" if self.kind in ("loading", "downloading") else ""
        return f"words only{so_far}: {self.why}" if self.reason else ""


class Provider(Protocol):
    """Has a model, or will have one; nobody waits for it unless they say so."""

    def ready(self, wait: float = 0.0) -> Embedder | None:
        """Return the model if it is loaded within `wait` seconds; begin to load it otherwise."""

    def state(self) -> State:
        """Say how the model stands."""


class Unusable(AiamlError):  # noqa: N818 (what it is)
    """A model that cannot be used.

    Attributes:
        reason: why.
        remedy: what to do about it, if that can be said.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__("; ".join(filter(None, (reason, remedy))))
        self.reason = reason
        self.remedy = remedy


class Kept(ABC, Generic[Loaded]):
    """A model of a configuration, of whichever kind: found here, else fetched, and loaded.

    Attributes:
        folder: where it is, or would be.
    """

    _key_of_name, _key_of_path = "embedding.model", "embedding.path"
    _takes_a_folder = "`aiaml semantic use DIRECTORY` takes"

    def __init__(
        self,
        wanted: Config,
        cache: Path,
        clock: Callable[[], float] = time.monotonic,
        noted: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Note what is wanted; nothing begins yet.

        Args:
            wanted: which model.
            cache: a directory of ours, where models are kept that were fetched.
            clock: tells seconds.
            noted: is told why it could not be fetched or loaded.
        """
        self._wanted = wanted
        self._clock = clock
        self._noted = noted
        self.name, path = self._named()
        self._fetched = not path
        self.folder = Path(path or cache / self.name.replace("/", "--"))
        self._loaded: Loaded | None = None
        self._state: State | None = None
        self._failed_at: float | None = None
        self._failed_with: object = None  # of the folder, when it could not be loaded
        self._by_person = False
        self._leaving = False  # whether the process is about to end
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._imported = threading.Event()
        self._thread: threading.Thread | None = None

    def _named(self) -> tuple[str, str]:
        """Return the model's name, and the folder that a person has named for it, if so."""
        return self._wanted.model, self._wanted.path

    @abstractmethod
    def _fastembed(self) -> Any:
        """Return fastembed's class of models of this kind."""

    def described(self) -> Described:
        """Return what fastembed says of it.

        Raises:
            Unusable: it knows none of that name.
        """
        models = self._fastembed().list_supported_models()
        if found := known(self.name, models):
            return found
        near = get_close_matches(self.name, [each["model"] for each in models], 1, 0.5)
        folder = f"{self._key_of_path} can name a folder that holds it"
        hint = f"did you mean {near[0]}?" if near else folder
        raise Unusable(f"{self._key_of_name} is {self.name}, which fastembed does not know", hint)

    @abstractmethod
    def _load(self) -> Loaded:
        """Load what is in the folder.

        Raises:
            Unusable: it is broken, incomplete, no model, or one of another kind.
        """

    def ready(self, wait: float = 0.0) -> Loaded | None:
        """Return what is loaded, or None while there is nothing.

        The first call begins to load, and to fetch where that is allowed; one that comes five
        minutes after a failed transfer tries again, and so does one after a folder has changed.

        Args:
            wait: seconds to wait for it.
        """
        if self._loaded is None:
            self._begin(self._wanted.download)
            if wait and self._thread is not None:
                self._done.wait(wait)
        return self._loaded

    def fetch(self, *, anew: bool = False) -> None:
        """Begin to load, and to fetch, because a person says so.

        Args:
            anew: fetch it even if it seems to be here.
        """
        if anew and self._fetched:
            remove_own(self.folder)
        self._failed_at = None
        self._by_person = True  # who sees that it failed, and decides when to try again
        self._begin(True)

    def look_up(self) -> None:
        """Import fastembed where only that can say whether there is such a model to be fetched.

        It takes a second, which who asks for `state` only waits for where that is told to a person.
        """
        if self._fetched and self.name not in _SIZES and not _is_whole(self.folder):
            with suppress(Exception):  # it is not installed, or broken, as loading says
                fastembed()

    def state(self) -> State:
        """Say how it stands; nothing begins by that."""
        state = self._state or self._before(self._wanted.download, has_begun=False)
        if state.kind == "downloading":
            done = min(_size(self.folder), state.total or _size(self.folder))
            return state._replace(done=done, reason=self._downloading(done, state.total))
        if state.kind == "failed" and self._failed_at is not None and not self._by_person:
            seconds = max(0.0, self._failed_at + AGAIN_SECONDS - self._clock())
            soon = f"in {seconds / 60:.0f} min" if seconds >= 60 else "soon"
            return state._replace(remedy=f"it is tried again {soon}, or by `{FETCH}`")
        return state

    def _begin(self, download: bool) -> None:
        with self._lock:
            thread = self._thread  # which lives on for a moment after it is done
            running = thread is not None and thread.is_alive() and not self._done.is_set()
            if running or self._loaded is not None or not self._due():
                return
            self._state = self._before(download)
            if self._state.kind in ("off", "missing", "failed"):
                return
            self._done.clear()
            self._imported.clear()
            if self._thread is None:
                # What is loaded wants to register with it, which a process that ends refuses.
                import concurrent.futures.thread  # noqa: PLC0415, F401

                atexit.register(self._leave)
            self._thread = threading.Thread(
                target=self._work, args=(download,), name="semantic-model", daemon=True
            )
            self._thread.start()

    def _due(self) -> bool:
        if self._state is None or self._state.kind != "failed":
            return True
        if self._failed_at is None:
            return self._by_person or self._failed_with != _stamp(self.folder)
        return self._clock() >= self._failed_at + AGAIN_SECONDS

    def _before(self, download: bool, *, has_begun: bool = True) -> State:
        """Say what can be said by looking at files alone."""
        name = self.name
        if find_spec("fastembed") is None:
            install = "pip install 'aiaml-server[semantic]' (not on Python 3.15 yet)"
            return State("off", "fastembed is not installed", install)
        if wrong := self._wrong():
            return State("failed", wrong.reason, wrong.remedy)
        if not self._fetched or _is_whole(self.folder):
            return _loading(name)
        total = _SIZES.get(name, 0)
        done = min(_size(self.folder), total)
        size = f" ({_megabytes(total)} MB)" if total else ""
        what = f"the model {name}{size} is not on this machine"
        if not download:
            what = f"{what}, and embedding.download is false"
            return State("missing", what, f"`{FETCH}` fetches it", done, total)
        if not has_begun:
            remedy = f"it is fetched when it is first needed, or by `{FETCH}`"
            return State("missing", what, remedy, done, total)
        return State("downloading", self._downloading(done, total), "", done, total)

    def _wrong(self) -> Unusable | None:
        """Return what is wrong with the folder or the name, as far as that is known by now."""
        name = self.name
        if not self._fetched:
            if self.folder.is_dir():
                return None
            return Unusable(f"{self._key_of_path} is {self.folder}, and there is no such folder")
        if not _NAME.fullmatch(name) or ".." in name:
            return Unusable(f"{self._key_of_name} is {name!r}, which is no model's name")
        if not _is_whole(self.folder) and hasattr(sys.modules.get("fastembed"), "TextEmbedding"):
            try:
                self.described()
            except Unusable as error:
                return error
        return None

    def _downloading(self, done: int, total: int) -> str:
        name = self.name
        if not total:  # it begins with whether there is such a model
            return f"the model {name} is being looked up"
        return f"the model {name} is being downloaded: {_megabytes(done)} of {_megabytes(total)} MB"

    def _work(self, download: bool) -> None:
        try:
            if self._fetched and not _is_whole(self.folder):
                if not download:
                    return
                fastembed()
                self._imported.set()
                self._fetch()
            if self._leaving:
                return
            self._state = _loading(self.name)
            loaded = self._load()
            self._state, self._loaded = State("ready"), loaded
        except Unusable as error:
            self._failed_at, self._failed_with = None, _stamp(self.folder)
            self._state = State("failed", error.reason, error.remedy)
            self._noted(error)
        except Exception as error:  # noqa: BLE001 (fastembed, onnxruntime and the hub raise anything)
            self._failed_at = self._clock()
            what = f"the model {self.name} cannot be fetched: {reason_of(error)}"
            self._state = State("failed", what, _WITHOUT_HUB.format(self._takes_a_folder))
            self._noted(error)
        finally:
            self._imported.set()
            self._done.set()

    def _leave(self) -> None:
        """Wait while onnxruntime is imported or loads: it aborts a process that ends meanwhile."""
        self._leaving = True
        self._imported.wait(LOAD_SECONDS)
        if self._state and self._state.kind == "loading":
            self._done.wait(LOAD_SECONDS)

    def _fetch(self) -> None:
        """Fetch what the model consists of; what an earlier try has got is not fetched again."""
        known = self.described()
        self._state = State("downloading", total=int(known["size_in_GB"] * 1e9))
        from huggingface_hub import HfApi, hf_hub_download  # noqa: PLC0415 (heavy)
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError  # noqa: PLC0415

        if (self.folder / _LIST).exists():  # it was whole once; what is left is not to be trusted
            remove_own(self.folder)
        make_own_directory(self.folder.parent)
        make_own_directory(self.folder)
        source, endpoint = known["sources"]["hf"], os.environ.get("HF_ENDPOINT") or None
        newest = HfApi(endpoint, token=False).model_info(source, timeout=_HUB_SECONDS).sha
        files = [known["model_file"], *known["additional_files"], *_NEEDED]
        sizes = {}
        for name in (*_OPTIONAL, *reversed(files)):  # the largest last
            try:
                path = hf_hub_download(
                    source,
                    name,
                    revision=newest,
                    local_dir=self.folder,
                    endpoint=endpoint,
                    token=False,
                    etag_timeout=_HUB_SECONDS,
                )
            except LocalEntryNotFoundError:
                raise
            except EntryNotFoundError:
                if name in files:
                    raise
            else:
                sizes[name] = Path(path).stat().st_size
        data = json.dumps({"model": self.name, "files": sizes}, indent=2)
        replace_atomic(self.folder / _LIST, data.encode(), 0o600)


class Model(Kept[Embedder]):
    """The model that turns texts into vectors."""

    def _fastembed(self) -> Any:
        return fastembed().TextEmbedding

    def _load(self) -> Embedder:
        wanted, folder = self._wanted, self.folder
        described_as = known(self.name, self._fastembed().list_supported_models())
        weights = weights_in(folder, described_as)
        whole = "put a whole one there, or name another folder"
        remedy = f"`{FETCH} --anew` fetches it anew" if self._fetched else whole
        if described_as and weights == folder / described_as["model_file"]:
            name = described_as["model"]
        else:
            name = _registered(folder, weights, wanted)
        try:
            embedding = self._fastembed()(
                name, specific_model_path=os.fspath(folder), cuda=wanted.device != "cpu"
            )
            (vector,) = embedding.embed(["width"])
        except Exception as error:
            what = f"the model in {folder} cannot be loaded: {reason_of(error)}"
            raise Unusable(what, remedy) from error
        if (width := len(vector)) != wanted.dimension:
            what = f"embedding.dimension is {wanted.dimension}, and the model {wanted.model} makes"
            raise Unusable(f"{what} vectors of {width}", f"set it to {width}")
        before = prefixes(wanted.model, wanted.query_prefix, wanted.document_prefix)
        return _Loaded(wanted.model, _digest(weights), width, embedding, before)


def embedder() -> Embedder | None:
    """Return the person's model; None where it is not here or cannot be loaded. None is fetched."""
    home = place.home()
    wanted = replace(config.load(home), download=False)
    return Model(wanted, home / CACHE).ready(LOAD_SECONDS)


def _loading(name: str) -> State:
    return State("loading", f"the model {name} is being loaded", "ask again in a few seconds")


class _Loaded:
    """A model of fastembed's.

    Attributes:
        thresholds: what its cosines mean; None where that is known of its name.
    """

    def __init__(
        self, name: str, version: str, dimension: int, embedding: Any, before: Prefixes
    ) -> None:
        self.name = name
        mark = hashlib.sha256(before.text.encode()).hexdigest()[:6]
        self.version = f"{version}+{mark}" if before.text else version  # other vectors, then
        self.dimension = dimension
        self._embedding = embedding
        self._before = before
        self._lock = threading.Lock()
        is_known = name in (*config.THRESHOLDS, config.MODEL)
        self.thresholds = None if is_known else calibrated(self.embed_questions, self.embed)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return self._vectors(self._before.text, texts)

    def embed_questions(self, questions: Sequence[str]) -> list[list[float]]:
        """Return a vector for each question, to be compared with those of texts."""
        return self._vectors(self._before.question, questions)

    def _vectors(self, before: str, texts: Sequence[str]) -> list[list[float]]:
        whole = [before + replace_surrogates(text) for text in texts]
        with self._lock:
            return [
                [float(each) for each in vector]
                for vector in self._embedding.embed(whole, batch_size=_BATCH)
            ]


def _is_whole(folder: Path) -> bool:
    """Say whether all that was fetched is here, each file with its size."""
    try:
        files = json.loads(read_own(folder / _LIST, _LIST_MOST))["files"]
        return all((folder / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder, those included that are still coming."""
    return sum(size for _, size, _ in _stamp(folder))


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what tells a folder from itself after its files were changed."""
    found = []
    for directory, _, names in os.walk(folder):
        for path in (Path(directory, name) for name in names):
            with suppress(OSError):
                status = path.stat()
                found.append((os.fspath(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}"


def reason_of(error: BaseException) -> str:
    """Return what went wrong at the bottom of it, on one line."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    said = next(filter(None, (line.strip() for line in str(error).splitlines())), "")
    said = (re.sub(r"^\[Errno -?\d+\] ", "", said) or type(error).__name__)[:200].rstrip(".")
    return said[:1].lower() + said[1:]


# --- what fastembed knows -------------------------------------------------------------------------


def fastembed() -> Any:
    """Import fastembed, quiet: nothing is sent about us, and nothing drawn on the terminal."""
    for name in (
        "HF_HUB_DISABLE_TELEMETRY",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN",
        "HF_HUB_DISABLE_XET",  # its chunks would lie in a directory that is not ours
    ):
        os.environ.setdefault(name, "1")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # else it tells its makers of this computer
    had, socket.has_ipv6 = socket.has_ipv6, False  # else urllib3 opens one, to see whether it may
    try:
        import fastembed as imported  # noqa: PLC0415 (heavy)
    finally:
        socket.has_ipv6 = had
    from loguru import logger  # noqa: PLC0415 (heavy)

    logger.disable("fastembed")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # `state` tells what it warns of
    return imported


def known(name: str, models: Sequence[Described]) -> Described | None:
    """Return a model's description; None where there is none of that name."""
    return next((each for each in models if each["model"].lower() == name.lower()), None)


def weights_in(folder: Path, known: Described | None) -> Path:
    """Return the weights in a folder that holds a model.

    Raises:
        Unusable: something is missing.
    """
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise Unusable(f"the folder {folder} has no {name}, which a model must have")
    if known and (folder / known["model_file"]).is_file():
        return folder / str(known["model_file"])
    found = sorted({*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")})
    if not found:
        raise Unusable(f"the folder {folder} has no .onnx file, which a model must have")
    return next((each for each in found if each.stem in ("model", "model_optimized")), found[0])


def _registered(folder: Path, weights: Path, wanted: Config) -> str:
    """Return the name by which fastembed knows how to use a folder's model."""
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415 (heavy)

    file, is_first = weights.relative_to(folder).as_posix(), _is_first(folder, wanted.model)
    whole = f"{folder}:{file}:{wanted.dimension}:{is_first}"
    name = f"local/{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:16]}"
    with suppress(ValueError):  # it is registered already
        fastembed().TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.CLS if is_first else PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=wanted.dimension,
            model_file=file,
        )
    return name


def _is_first(folder: Path, name: str) -> bool:
    """Say whether a model's vector is that of the first token, and not the mean of all.

    Its `1_Pooling/config.json` says so, as sentence-transformers has it; without, it is known of
    some families.
    """
    with suppress(OSError, ValueError, AttributeError, RecursionError):
        said = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        return bool(said.get("pooling_mode_cls_token"))
    return any(family in name.lower() for family in ("bge-", "arctic-embed", "mxbai-embed"))


def _digest(path: Path) -> str:
    """Return what tells these weights from others."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
