"""The film as a page holds it: all of it, or its beginning, without coding it anew."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import av

MOST_BYTES = 8_000_000


def embedded(film: Path) -> tuple[str, bool]:
    """The film as a data address, and whether it is all of it."""
    if film.stat().st_size <= MOST_BYTES:
        return _address(film.read_bytes()), True
    return _address(_beginning(film)), False


def _beginning(film: Path) -> bytes:
    """As much of its beginning as a page holds well."""
    target = io.BytesIO()
    with av.open(str(film)) as source, av.open(target, "w", format="mp4") as short:
        stream = source.streams.video[0]
        copied, size = short.add_stream_from_template(stream), 0
        for packet in source.demux(stream):
            if packet.dts is None or size + packet.size > MOST_BYTES:
                break
            size += packet.size
            packet.stream = copied
            short.mux(packet)
    return target.getvalue()


def _address(data: bytes) -> str:
    return f"data:video/mp4;base64,{base64.b64encode(data).decode()}"
