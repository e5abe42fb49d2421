"""``python answering.py``: a server with OpenAI's interface that answers at once, always the same; prints its port."""

import asyncio
import json

_TEXT = "It explains how something works, with an example.\nEducational score: 3"
_BODY = json.dumps(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20},
    }
).encode()
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
_LENGTH = b"content-length:"


class _Answering(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._left = transport, b""

    def data_received(self, data: bytes) -> None:
        self._left += data
        while (end := self._left.find(b"\r\n\r\n")) >= 0:
            head = self._left[:end].lower()
            begin = head.index(_LENGTH) + len(_LENGTH)
            behind = end + 4 + int(head[begin:].split(b"\r\n")[0])
            if len(self._left) < behind:
                return
            self._left = self._left[behind:]
            self._transport.write(_REPLY)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
