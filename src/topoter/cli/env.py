"""`topoter env`: versions, threads, devices, which kernels are active."""

from __future__ import annotations

import platform

from topoter.cli.output import Json, out, print_json


def run(json: Json = False) -> None:
    """Show versions, threads, devices, and which kernels are active."""
    import torch

    from topoter.experiments.runs import versions
    from topoter.kernels import active
    from topoter.kernels.compiled import num_threads

    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    content = {
        "versions": versions(),
        "platform": platform.platform(),
        "threads": {"torch": torch.get_num_threads(), "kernels": num_threads()},
        "devices": devices,
        "kernels": active(),
    }
    if json:
        print_json(content)
        return
    for title, value in content.items():
        if isinstance(value, dict):
            out.print(f"[bold]{title}[/bold]")
            for name, text in value.items():
                out.print(f"  {name:16} {text}", soft_wrap=True)
        else:
            out.print(
                f"[bold]{title}[/bold] {', '.join(value) if isinstance(value, list) else value}",
                soft_wrap=True,
            )
