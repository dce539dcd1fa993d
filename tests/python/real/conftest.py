"""Each test of this folder gets `program`, or is skipped where cuda-bindings is missing."""
import pytest
from rig import Program


@pytest.fixture(autouse=True)
def bindings():
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed", exc_type=ImportError)


@pytest.fixture
def program(tmp_path):
    """Makes a Program of its source."""
    return lambda source, **keywords: Program(tmp_path, source, **keywords)
