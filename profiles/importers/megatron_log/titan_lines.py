"""Step times from torchtitan's line.

``step: 10  loss:  7.12  grad_norm:  1.2  memory: 40.10GiB(50.12%)  tps: 1,234  tflops: 123.45  mfu: 12.48%``
``tps`` is tokens a second and device, mean since the line before; the line prints no time.  It follows from
``global batch size``, ``sequence length`` (line "Trainer is initialized with ...") and the device mesh:
``time = global batch x sequence / (tps x devices)``.  Memory is the peak *reserved* since the line before, GiB 2^30.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import bytes_of, positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.importing.number_cells import finite_number
from profiles.observations.records import IterationObservation

KIND = "torchtitan"
LINE = re.compile(
    r"\bstep: {1,8}(\d{1,12}) {1,8}loss: {1,8}\S{1,40} .{0,200}?"
    r"memory: {1,8}([\d.]{1,20}GiB)\([^)]{0,20}\) {1,8}(?:tps|wps): {1,8}(\S{1,40})"
)
_TFLOPS = re.compile(r"tflops: +([\d.,]+)")
_TRAINER = re.compile(
    r"Trainer is initialized with local batch size (\d{1,9}), global batch size (\d{1,9}), "
    r"gradient[ _]accumulation[ _]steps:? \d{1,9}, sequence length (\d{1,9})"
)
_MESH = re.compile(r"Building device mesh with parallelism: ((?:\w{1,20}=\d{1,7},? ?){1,20})")
_OLD_MESH = re.compile(r"Building \d-D device mesh with \[([^\]]{0,200})\], \[([\d, ]{0,100})\]")
_DEVICE = re.compile(r"(?<!\w)\w{1,20} capacity: (.{3,60}?) with [\d.]+GiB memory")
_AXES = {"pp": "pp", "dp_replicate": "dp_replicate", "dp_shard": "dp_shard", "cp": "cp", "tp": "tp"}


def iteration_of(text: str) -> int | None:
    """The step that the line reports; None when it is another line."""
    match = LINE.search(text)
    return int(match[1]) if match else None


def read_facts(text: str, run: Run) -> bool:
    """Take the device, the mesh and the batch from the lines printed at the start; False for other lines."""
    if match := _TRAINER.search(text):
        run.micro_batch_size, run.global_batch_size, run.sequence_length = (int(match[i]) or None for i in (1, 2, 3))
    elif match := _MESH.search(text):
        _take_mesh(dict(part.strip(" ,").split("=") for part in match[1].split() if "=" in part), run)
    elif match := _OLD_MESH.search(text):
        names = [name.strip(" '\"") for name in match[1].split(",")]
        _take_mesh(dict(zip(names, match[2].split(","), strict=False)), run)
    elif match := _DEVICE.search(text):
        run.device_reported = match[1]
    else:
        return False
    return True


def _take_mesh(mesh: dict[str, str], run: Run) -> None:
    devices = 1
    for name, size in mesh.items():
        axis = _AXES.get("dp_shard" if name == "dp" else name)
        degree = positive_whole(size)
        if degree is not None and axis is not None:
            run.strategy[axis] = degree
            devices *= degree
        elif degree is not None and name in ("ep", "etp"):
            run.strategy[name] = degree
    run.num_devices = devices


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of a torchtitan line to the run; without a batch and a mesh it holds memory only."""
    match = LINE.search(line.text)
    if match is None:
        return
    step = int(match[1])
    if run.is_repeated(KIND, step):
        imported.skip(REPEATED)
        return
    try:
        tokens_per_s = finite_number(match[3], thousands=True)
        tflops = _TFLOPS.search(line.text)
        flops = finite_number(tflops[1], thousands=True) * 1e12 if tflops else 0.0
        reserved = bytes_of(match[2])
        batch, length, devices = run.batch(), run.length(), run.devices()
        timing = None
        if batch and length and devices and tokens_per_s > 0:
            timing = run.mean_of(batch * length / (tokens_per_s * devices), KIND, step)
    except (ValueError, OverflowError) as error:
        imported.bad(line.number, str(error), "was the line cut off?")
        return
    run.framework = run.framework or KIND
    run.iterations_seen[KIND] = step
    reading = IterationObservation(
        timing,
        iteration=step,
        rank=line.rank,
        peak_reserved_bytes=reserved,
        reported_flops_per_s_per_device=flops or None,
        detail={"tokens_per_s_per_device": tokens_per_s},
        row=line.number,
    )
    (run.memory if timing is None else run.timed).append(reading)
    if timing is None and not any(flag.code == "no-step-time" for flag in imported.flags):
        imported.flag(
            "no-step-time",
            "the log prints tokens a second only; --set global_batch_size=.. --set sequence_length=.. "
            "--set num_devices=.. give the time",
            line.number,
        )
