"""Kill a program that writes a checkpoint, and run it again."""

import signal
import subprocess
import time

PATIENCE = 60


def output_after_a_kill(command, checkpoint, delay):
    """Output of ``command`` after it was killed ``delay`` seconds after its checkpoint appeared, and started again."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if checkpoint.exists():
            time.sleep(delay)
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
