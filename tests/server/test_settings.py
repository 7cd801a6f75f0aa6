"""Settings: which project it is, which layer wins, and that nothing wrong passes for a setting."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from engram.config.providers import KEY_VARIABLES
from engram.server.failures import Failure
from engram.server.settings import PERSONAL, ServerSettings, load

Layers = dict[str, str]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: the path of a socket has a limit, whatever a test is called."""
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/.engram").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work/atlas/.engram").mkdir(parents=True)
    return tmp_path / "work/atlas"


@pytest.fixture
def loaded(home: Path, root: Path):
    """Load with the given text of the user's and the project's file, and variables."""

    def load_them(own: str = "", shared: str = "", **variables: str) -> ServerSettings:
        (home / ".engram/engram.toml").write_text(own)
        (root / ".engram/engram.toml").write_text(shared)
        return load({"HOME": str(home), **variables}, root)

    return load_them


def refused(call, *arguments, **named) -> tuple[int, str]:
    with pytest.raises(Failure) as failure:
        call(*arguments, **named)
    assert failure.value.message.startswith(f"[{failure.value.code}] ")
    return failure.value.code, failure.value.message


def test_the_project_is_the_nearest_folder_above_that_has_one(home, root):
    below = root / "src/deep"
    below.mkdir(parents=True)
    found = load({"HOME": str(home)}, below)
    assert found.root == root
    assert found.socket_path == root / ".engram/engram.sock"
    assert found.store_path == root / ".engram/engram.db"


def test_the_environment_names_another_project_by_an_absolute_path_only(home, root, tmp_path):
    other = tmp_path / "other"
    (other / ".engram").mkdir(parents=True)
    at = {"HOME": str(home)}
    assert load(at | {"ENGRAM_PROJECT_DIR": str(other)}, root).root == other
    assert load(at | {"ENGRAM_PROJECT_DIR": "../other"}, root).root == root
    assert load(at | {"ENGRAM_PROJECT_DIR": ""}, root).root == root


def test_a_file_named_engram_makes_no_project(home, tmp_path):
    place = tmp_path / "plain"
    place.mkdir()
    (place / ".engram").write_text("")
    at = {"HOME": str(home), "ENGRAM_SOCKET_PATH": str(place / "s.sock")}
    code, message = refused(load, at, place)
    assert code == 6016
    assert "project directory not found" in message


def test_paths_of_the_environment_come_first(home, root):
    at = {"HOME": str(home), "ENGRAM_SOCKET_PATH": "run/s.sock", "ENGRAM_DB_PATH": "/data/m.db"}
    found = load(at, root)
    assert found.socket_path == root / "run/s.sock"
    assert found.store_path == Path("/data/m.db")


def test_the_configured_socket_is_for_projects_without_a_folder(home, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    at = {"HOME": str(home), "ENGRAM_PROJECT_DIR": str(bare)}
    assert refused(load, at, bare)[0] == 6006
    (home / ".engram/engram.toml").write_text('[server]\nsocket_path = "~/run/engram.sock"\n')
    assert load(at, bare).socket_path == home / "run/engram.sock"
    (home / ".engram/engram.toml").write_text('[server]\nsocket_path = "run/engram.sock"\n')
    assert load(at, home).socket_path == bare / "run/engram.sock"


def test_a_socket_path_that_no_socket_can_have_is_refused(home, root):
    at = {"HOME": str(home), "ENGRAM_SOCKET_PATH": "/" + "s" * 102}
    assert load(at, root).socket_path == Path(at["ENGRAM_SOCKET_PATH"])
    code, message = refused(load, at | {"ENGRAM_SOCKET_PATH": "/" + "é" * 52}, root)
    assert code == 6012
    assert "init failed" in message


def test_the_project_overrides_the_user_and_the_environment_both(loaded):
    own = '[embedding]\nmodel = "own"\n[server]\nworkers = 3\nreindex_interval_secs = 5\n'
    shared = '[embedding]\nmodel = "bge-small-en-v1.5"\n[server]\nworkers = 4\n'
    found = loaded(own, shared)
    assert (found.embedding.model, found.server.workers) == ("bge-small-en-v1.5", 4)
    assert found.server.reindex_interval_secs == 5
    assert loaded(own, shared, ENGRAM_EMBEDDING_MODEL="env").embedding.model == "env"
    unset = loaded(own, shared, ENGRAM_EMBEDDING_MODEL="")
    assert unset.embedding.model == "bge-small-en-v1.5"


def test_the_defaults(loaded):
    found = loaded()
    assert found.embedding.provider == "local"
    assert found.llm.provider == "none"
    assert (found.consolidation.stale_days, found.consolidation.min_score) == (90, 0.3)
    assert found.deduplication.threshold == 0.95
    search = found.search
    assert (search.rrf_k, search.vector_weight, search.sparse_weight) == (60, 0.7, 0.3)
    assert (found.trainer_binary, found.trainer.trainer_timeout_secs) == ("engram-trainer", 300)
    assert found.models_path.parent == found.home / ".engram/models"
    assert found.server.reindex_interval_secs == 3600


def test_variables_for_the_trainer(loaded):
    found = loaded(
        ENGRAM_TRAINER_BINARY="~/bin/train",
        ENGRAM_TRAINER_TIMEOUT="7",
        ENGRAM_MODELS_PATH="/m",
        ENGRAM_EMBEDDING_MODEL="some-model",
    )
    assert found.trainer_binary == str(found.home / "bin/train")
    assert found.trainer.trainer_timeout_secs == 7
    assert found.models_path.parent == Path("/m")
    assert found.embedding.model == "some-model"


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("[deduplication]\nthreshold = 0\n", 6022, "deduplication.threshold"),
        ("[deduplication]\nthreshold = 1.01\n", 6022, "deduplication.threshold"),
        ("[deduplication]\nthreshold = nan\n", 6022, "deduplication.threshold"),
        ("[search]\nrrf_k = 0\n", 6022, "search.rrf_k"),
        ("[search]\nvector_weight = -1\n", 6022, "search.vector_weight"),
        ("[search]\nvector_weight = 0\nsparse_weight = 0\n", 6022, "must not both be 0"),
        ("[search]\nsparse_weight = inf\n", 6022, "search.sparse_weight"),
        ("[consolidation]\nfts_similarity_floor = -0.1\n", 6022, "fts_similarity_floor"),
        ("[server]\nworkers = true\n", 6022, "server.workers"),
        ("[server]\nworkers = 1.5\n", 6022, "server.workers"),
        ("[embedding]\nhyde_threshold = 8\n", 6022, "embedding.hyde_threshold"),
        ("[trainer]\ntrainer_timeout_secs = 1979-05-27\n", 6022, "trainer_timeout_secs"),
        ("[deduplication]\ntreshold = 0.9\n", 6002, "deduplication has no setting treshold"),
        ("[serch]\nrrf_k = 1\n", 6002, "no section serch"),
        ("rrf_k = 1\n", 6002, "no section rrf_k"),
        ('[llm]\n"SECRET-1 x" = 1\n', 6002, "no setting of such a name"),
        ("[llm\n", 6002, "line 1"),
        ('[embedding]\nprovider = "voyage"\n', 6003, "embedding.provider"),
    ],
)
def test_what_is_wrong_is_refused_by_name_and_not_quoted(loaded, text, code, named):
    for layers in ((text,), ("", text)):
        found, message = refused(loaded, *layers)
        assert found == code
        assert named in message
        assert "SECRET" not in message


def test_what_is_wrong_with_the_language_model_is_said_likewise(loaded):
    code, message = refused(loaded, '[llm]\nprovider = "ollama"\n')
    assert (code, "llm.model" in message) == (6022, True)
    code, message = refused(loaded, '[llm]\nprovider = "SECRET-1"\n')
    assert (code, "llm.provider" in message, "SECRET" in message) == (6003, True, False)


def test_a_variable_that_is_no_number_is_refused(loaded):
    for text in ("abc", "-1", "0", "9" * 30, " 5"):
        code, message = refused(loaded, ENGRAM_TRAINER_TIMEOUT=text)
        assert code == 6022
        assert "trainer.trainer_timeout_secs" in message


PERSONAL_VALUES = {
    "embedding.api_key": "SECRET-1",
    "llm.provider": "openai",
    "llm.model": "SECRET-2",
    "llm.api_key": "SECRET-3",
    "trainer.trainer_binary": "/SECRET/program",
    "trainer.models_path": "/SECRET/models",
}


def test_every_setting_that_is_the_users_to_say_is_tried():
    assert set(PERSONAL_VALUES) == set(PERSONAL)


@pytest.mark.parametrize("name", PERSONAL_VALUES)
def test_what_is_the_users_to_say_is_refused_in_the_file_of_a_project(loaded, name):
    section, _, key = name.partition(".")
    text = f'[{section}]\n{key} = "{PERSONAL_VALUES[name]}"\n'
    loaded(text)
    code, message = refused(loaded, "", text)
    assert code == 6022
    assert name in message
    assert "SECRET" not in message


@pytest.mark.parametrize(
    "model", ["/SECRET/model", "SECRET/model", "~/SECRET", ".", "../SECRET", "SECRET-model"]
)
def test_a_model_of_a_project_has_a_registered_name(loaded, model):
    text = f'[embedding]\nmodel = "{model}"\n'
    assert loaded(text).embedding.model == model
    code, message = refused(loaded, "", text)
    assert code == 6022
    assert "embedding.model" in message
    assert "SECRET" not in message


@pytest.mark.parametrize(
    "model", ["BAAI/bge-small-en-v1.5", "all-MiniLM-L6-v2-int8", "deterministic", ""]
)
def test_a_registered_model_may_be_named_by_a_project(loaded, model):
    assert loaded("", f'[embedding]\nmodel = "{model}"\n').embedding.model == model


def test_no_key_shows_in_what_is_printed(loaded):
    text = '[llm]\nprovider = "openai"\napi_key = "SECRET-1"\n[embedding]\napi_key = "SECRET-2"\n'
    assert "SECRET" not in repr(loaded(text))


def test_keys_of_the_environment_are_those_of_the_provider(loaded):
    keys = {"ENGRAM_OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "ENGRAM_VOYAGE_API_KEY": "v"}
    assert loaded('[llm]\nprovider = "openai"\n', **keys).llm.api_key == "o"
    assert loaded('[llm]\nprovider = "anthropic"\n', **keys).llm.api_key == "a"
    assert loaded('[llm]\nprovider = "gemini"\n', **keys).llm.api_key == ""
    assert loaded(**keys).embedding.api_key == "v"


def test_the_key_of_the_environment_comes_before_that_of_a_file(loaded):
    text = '[llm]\nprovider = "anthropic"\napi_key = "filed"\n'
    assert loaded(text).llm.api_key == "filed"
    assert loaded(text, ANTHROPIC_API_KEY="").llm.api_key == "filed"
    assert loaded(text, ANTHROPIC_API_KEY="a").llm.api_key == "a"
    assert loaded(text, OPENAI_API_KEY="o", GOOGLE_API_KEY="g").llm.api_key == "filed"


def test_a_key_without_its_provider_goes_to_none(loaded, root, home, tmp_path):
    assert loaded('[llm]\napi_key = "SECRET"\n').llm.api_key == ""
    (home / ".engram/engram.toml").write_text('[llm]\nprovider = "openai"\napi_key = "SECRET"\n')
    (tmp_path / "other.toml").write_text('[llm]\nprovider = "deepseek"\n')
    assert load({"HOME": str(home)}, root, tmp_path / "other.toml").llm.api_key == ""


def test_each_providers_adapter_reads_the_same_variables(loaded):
    for provider, variables in KEY_VARIABLES.items():
        text = f'[llm]\nprovider = "{provider}"\n'
        everybodys = {name: name for names in KEY_VARIABLES.values() for name in names}
        for name in variables:
            assert loaded(text, **everybodys).llm.api_key == name
            del everybodys[name]
        assert loaded(text, **everybodys).llm.api_key == ""


@pytest.mark.parametrize(("name", "found"), [("~", "home"), ("~/", "home"), ("~/m", "home/m")])
def test_a_home_is_the_users(home, root, tmp_path, name, found):
    at = {"HOME": str(home)}
    paths = f'[trainer]\nmodels_path = "{name}"\ntrainer_binary = "{name}"\n'
    (home / ".engram/engram.toml").write_text(f'{paths}[server]\nsocket_path = "{name}"\n')
    settings = load(at, root)
    assert settings.models_path.parent == tmp_path / found
    assert Path(settings.trainer_binary) == tmp_path / found
    bare = tmp_path / "bare"
    bare.mkdir()
    assert load(at | {"ENGRAM_PROJECT_DIR": str(bare)}, bare).socket_path == tmp_path / found
    variables = at | {"ENGRAM_SOCKET_PATH": name, "ENGRAM_DB_PATH": name}
    settings = load(variables | {"ENGRAM_MODELS_PATH": name}, root)
    assert settings.models_path.parent == tmp_path / found
    assert (settings.socket_path, settings.store_path) == (tmp_path / found, tmp_path / found)


def test_the_home_of_somebody_else_and_of_nobody(loaded, root):
    somebody = pwd.getpwuid(os.getuid())
    found = loaded(ENGRAM_MODELS_PATH=f"~{somebody.pw_name}/m")
    assert found.models_path.parent == Path(somebody.pw_dir, "m")
    assert loaded(ENGRAM_MODELS_PATH="~no body/m").models_path.parent == root / "~no body/m"


def test_every_store_has_its_own_models(loaded, tmp_path):
    found = loaded(ENGRAM_DB_PATH="/data/a.db")
    assert re.fullmatch("[0-9a-f]{16}", found.models_path.name)
    assert loaded(ENGRAM_DB_PATH="/data/b.db").models_path != found.models_path
    (tmp_path / "data").symlink_to("/data")
    for same in ("/data/a.db", "/data/sub/../a.db", str(tmp_path / "data/a.db")):
        assert loaded(ENGRAM_DB_PATH=same).models_path == found.models_path


def test_a_named_file_takes_the_place_of_both(home, root, tmp_path):
    (home / ".engram/engram.toml").write_text("[server]\nworkers = 3\n")
    (tmp_path / "other.toml").write_text("[search]\nrrf_k = 7\n")
    at = {"HOME": str(home)}
    found = load(at, root, Path("../../other.toml"))
    assert (found.server.workers, found.search.rrf_k) == (8, 7)
    assert refused(load, at, root, tmp_path / "missing.toml")[0] == 6001


def test_files_that_cannot_be_read_are_named_as_such(home, root, tmp_path):
    at = {"HOME": str(home)}
    place = tmp_path / "bad.toml"
    for content in (b"\xff", b"#" * (1 << 20) + b"\n", b"a" + b"[" * 50_000):
        place.write_bytes(content)
        assert refused(load, at, root, place)[0] == 6002


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link", "loop", "device"])
def test_what_is_no_file_of_settings_is_not_passed_over(home, root, kind):
    at = {"HOME": str(home)}
    for folder in (home, root):
        place = folder / ".engram/engram.toml"
        match kind:
            case "folder":
                place.mkdir()
            case "pipe":
                os.mkfifo(place)
            case "dangling link":
                place.symlink_to("nowhere")
            case "loop":
                place.symlink_to(place)
            case "device":
                place.symlink_to(os.devnull)
        assert refused(load, at, root)[0] == 6002
        place.rmdir() if kind == "folder" else place.unlink()
    load(at, root)


def test_a_link_to_a_file_of_settings_is_followed(home, root, tmp_path):
    (tmp_path / "mine.toml").write_text("[server]\nworkers = 3\n")
    (home / ".engram/engram.toml").symlink_to(tmp_path / "mine.toml")
    assert load({"HOME": str(home)}, root).server.workers == 3


def test_a_key_file_that_is_open_to_others_is_said(home, root, tmp_path, capfd):
    secret = tmp_path / "key"
    secret.write_bytes(b"a pass\n")
    secret.chmod(0o644)
    load({"HOME": str(home), "ENGRAM_KEY_FILE": str(secret)}, root)
    said = capfd.readouterr().err
    assert said == "engram: others may open the file of ENGRAM_KEY_FILE: chmod 600\n"


def test_the_database_of_the_home_is_not_left_behind_unseen(home, root):
    at = {"HOME": str(home)}
    assert load(at, root).left_behind is None
    (home / ".engram/engram.db").write_bytes(b"old")
    assert load(at, root).left_behind == home / ".engram/engram.db"
    assert load(at | {"ENGRAM_DB_PATH": "m.db"}, root).left_behind is None
    (root / ".engram/engram.db").write_bytes(b"")
    assert load(at, root).left_behind is None


def test_the_passphrase_is_in_a_file(home, root, tmp_path):
    secret = tmp_path / "key"
    secret.write_bytes(b"a pass\n")
    at = {"HOME": str(home), "ENGRAM_KEY_FILE": str(secret)}
    found = load(at, root)
    assert found.key == "a pass"
    assert "a pass" not in repr(found)
    for content in (b"", b"\n", b"\xff\xfe"):
        secret.write_bytes(content)
        assert refused(load, at, root)[0] == 6022
    secret.unlink()
    code, message = refused(load, at, root)
    assert code == 6022
    assert os.strerror(2) in message


def test_a_local_language_model_is_where_the_environment_says(loaded):
    assert loaded().ollama_host == "http://localhost:11434"
    assert loaded(ENGRAM_OLLAMA_HOST="box:1").ollama_host == "http://box:1"
    assert loaded(ENGRAM_OLLAMA_HOST="https://box").ollama_host == "https://box"
