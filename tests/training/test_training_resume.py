"""A training that is killed goes on in another process to the same bits, whatever it trains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from trainings import CASES, EPOCHS, KINDS

from topoter.training import Checkpoint
from topoter.training.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of trainings that were killed, each in a process of its own."""
    folder = tmp_path_factory.mktemp("killed")
    script = Path(__file__).with_name("trainings.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=300)
    return folder


@pytest.mark.parametrize(("kind", "phase", "epoch"), CASES)
def test_a_killed_training_goes_on_to_the_same_bits(left_behind: Path, kind: str, phase: str, epoch: int) -> None:
    state = left_behind / f"{kind} {phase}"
    content = load_checkpoint(state, "training")[1]
    assert (content["phase"], len(content["history"])) == (phase, epoch)
    history, learned = KINDS[kind]([Checkpoint(state, resume=True)])
    whole_history, whole = KINDS[kind]([])
    assert len(history) >= EPOCHS
    assert history == whole_history
    assert learned.tobytes() == whole.tobytes()
