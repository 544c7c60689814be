"""Uploads to a file: bounded in size, and of a kind of film that the first bytes show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path


class UploadError(Exception):
    """Upload that is refused, with the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


HEAD_BYTES = 64


def clip_suffix(head: bytes) -> str | None:
    """Return the suffix of the film or table that a file's first bytes announce; None for anything else."""
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return ".mp4"
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return ".mkv"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return ".avi"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return ".gif"
    if head[:4] in (b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3"):
        return ".mpg"
    if head[:3] == b"FLV":
        return ".flv"
    if head[:16] == bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"):
        return ".wmv"
    return ".ts" if head[:1] == b"\x47" and len(head) >= HEAD_BYTES else None


async def receive_clip(chunks: AsyncIterator[bytes], folder: Path, max_bytes: int) -> Path:
    """Write an upload to a file of the folder, named by its content alone, and return its path.

    Raises:
        UploadError: It is too large, empty, or no film; nothing is left behind.
    """
    path, size, head = folder / "upload", 0, b""
    try:
        with path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise UploadError(413, f"the clip is larger than {max_bytes / 2**20:.0f} MB; trim it and try again")
                head = (head + chunk)[:HEAD_BYTES] if len(head) < HEAD_BYTES else head
                if len(head) >= HEAD_BYTES and clip_suffix(head) is None:
                    break  # no more of it is read
                file.write(chunk)
        suffix = clip_suffix(head)
        if size == 0:
            raise UploadError(400, "the file is empty")
        if suffix is None:
            raise UploadError(415, "this file is no film: expected MP4, MOV, WebM, MKV, AVI, GIF, MPEG or WMV")
        return path.rename(folder / f"clip{suffix}")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


async def receive_text(chunks: AsyncIterator[bytes], max_bytes: int) -> str:
    """Return an upload of text in UTF-8.

    Raises:
        UploadError: It is too large, or not in UTF-8.
    """
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > max_bytes:
            raise UploadError(413, f"the request is larger than {max_bytes / 2**20:.0f} MB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UploadError(400, "the request is no text in UTF-8") from error
