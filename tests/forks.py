"""A function run by several processes of this machine that share a gloo group; for programs in a process of their own.

Forking is quick, because the processes import nothing, but only safe in a process without threads, so not in pytest.
"""

import os
import signal
import sys
import traceback
from datetime import timedelta

import torch.distributed as dist

SECONDS = 300


def in_group(count, function, folder, *arguments):
    """Run ``function(*arguments)`` in ``count`` processes, and return their exit codes; a signal is a negative code.

    A process that loses another one gets an exception, like any other error of ``function``: code 1.
    """
    place = folder / f"store-{os.urandom(8).hex()}"
    sys.stdout.flush()
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            signal.alarm(SECONDS)
            try:
                dist.init_process_group(
                    "gloo", f"file://{place}", timeout=timedelta(seconds=SECONDS), rank=rank, world_size=count
                )
                function(*arguments)
                dist.barrier()
                dist.destroy_process_group()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
