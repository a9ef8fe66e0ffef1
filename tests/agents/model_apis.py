"""The APIs of models, as far as coding agents need them: what a request asks, and how an answer is encoded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tests.agents.scenarios import Call, Tools

INPUT: Final = 1000
OUTPUT: Final = 50
CACHED: Final = 2000
WRITTEN: Final = 300
"""Tokens of each answer: new input, output, input read from the cache, input written to it (Anthropic only)."""

Event = tuple[str, Any]
"""Name and data of a server-sent event; the name may be empty."""


@dataclass(frozen=True)
class Request:
    """What the server needs to know about a request."""

    tools: Tools
    calls: int
    """Results of tool calls since the prompt."""
    is_streaming: bool
    model: str


@dataclass(frozen=True)
class Reply:
    """One answer: a text and perhaps a tool call."""

    number: int
    text: str
    call: Call | None

    @property
    def arguments(self) -> str:
        """The arguments of the call as text."""
        given = self.call.arguments if self.call else ""
        return given if isinstance(given, str) else json.dumps(given)


class ModelApi(Protocol):
    """One API of models."""

    def parse(self, path: str, body: dict[str, Any]) -> Request:
        """Return what a request asks for."""

    def document(self, request: Request, reply: Reply) -> dict[str, Any]:
        """Encode an answer in one piece."""

    def events(self, request: Request, reply: Reply) -> Iterator[Event]:
        """Encode an answer as server-sent events."""


def _parameters(schema: Any) -> Sequence[str]:
    return list((schema or {}).get("properties") or {})


class AnthropicMessages:
    """Anthropic Messages."""

    def parse(self, path: str, body: dict[str, Any]) -> Request:
        """Count the tool results in all messages."""
        messages = [message["content"] for message in body.get("messages", []) if isinstance(message["content"], list)]
        results = [block for blocks in messages for block in blocks if block.get("type") == "tool_result"]
        tools = {tool["name"]: _parameters(tool.get("input_schema")) for tool in body.get("tools") or []}
        return Request(tools, len(results), bool(body.get("stream")), body.get("model", ""))

    def _content(self, reply: Reply) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        if reply.call:
            call = {"type": "tool_use", "id": f"toolu_{reply.number:04d}", "name": reply.call.name}
            content.append({**call, "input": reply.call.arguments})
        return content

    def document(self, request: Request, reply: Reply) -> dict[str, Any]:
        """Encode a message."""
        usage = {"input_tokens": INPUT, "output_tokens": OUTPUT}
        usage |= {"cache_read_input_tokens": CACHED, "cache_creation_input_tokens": WRITTEN}
        message = {"id": f"msg_{reply.number:04d}", "type": "message", "role": "assistant", "model": request.model}
        stop = "tool_use" if reply.call else "end_turn"
        return {
            **message,
            "content": self._content(reply),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }

    def events(self, request: Request, reply: Reply) -> Iterator[Event]:
        """Encode a message in parts."""
        message = self.document(request, reply)
        content, stop, usage = message["content"], message["stop_reason"], message["usage"]
        start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": start}
        for index, block in enumerate(content):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": OUTPUT}}
        yield "message_stop", {"type": "message_stop"}


_CODE: Final = "exec"
"""Tool of Codex that runs a script, which calls the other tools; newer models have only this one."""
_DECLARATION: Final = re.compile(r"declare const tools: \{ (\w+)\((.*?)\): Promise", re.DOTALL)
_PARAMETER: Final = re.compile(r"^  (\w+)\??:", re.MULTILINE)


def _tools_of_code(description: str) -> Tools:
    """Return the tools that a script can call, as the description of the script's tool declares them."""
    return {found[1]: _PARAMETER.findall(found[2]) for found in _DECLARATION.finditer(description)}


class OpenAiResponses:
    """OpenAI Responses, as Codex uses it."""

    def parse(self, path: str, body: dict[str, Any]) -> Request:
        """Count the outputs of calls in the input."""
        items = body["input"] if isinstance(body.get("input"), list) else []
        calls = sum(str(item.get("type", "")).endswith("_output") for item in items)
        offered = list(body.get("tools") or [])
        for item in items:
            offered += item.get("tools") or [] if item.get("type") == "additional_tools" else []
        tools: dict[str, Sequence[str]] = {}
        for tool in offered:
            for one in tool["tools"] if tool.get("type") == "namespace" else [tool]:
                tools[one.get("name") or one.get("type", "")] = _parameters(one.get("parameters"))
                if one.get("name") == _CODE:
                    tools |= _tools_of_code(one["description"])
        return Request(tools, calls, bool(body.get("stream")), body.get("model", ""))

    def _output(self, request: Request, reply: Reply) -> list[dict[str, Any]]:
        output: list[dict[str, Any]] = []
        if reply.text:
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            output.append({"type": "message", "id": f"msg_{reply.number}", "role": "assistant", "content": content})
        if reply.call:
            call = reply.call
            ids = {"id": f"fc_{reply.number}", "call_id": f"call_{reply.number:04d}"}
            if _CODE in request.tools:
                script = f"text(await tools.{call.name}({json.dumps(call.arguments)}));"
                output.append({"type": "custom_tool_call", **ids, "name": _CODE, "input": script})
            elif isinstance(call.arguments, str):
                output.append({"type": "custom_tool_call", **ids, "name": call.name, "input": call.arguments})
            else:
                output.append({"type": "function_call", **ids, "name": call.name, "arguments": reply.arguments})
        return [{**item, "status": "completed"} for item in output]

    def document(self, request: Request, reply: Reply) -> dict[str, Any]:
        """Encode a response."""
        usage = {
            "input_tokens": INPUT + CACHED,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": OUTPUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT + CACHED + OUTPUT,
        }
        response = {"id": f"resp_{reply.number}", "object": "response", "status": "completed", "model": request.model}
        return {**response, "output": self._output(request, reply), "usage": usage, "error": None}

    def events(self, request: Request, reply: Reply) -> Iterator[Event]:
        """Encode a response item by item."""
        response = self.document(request, reply)
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        yield "response.created", {"type": "response.created", "response": begun}
        for index, item in enumerate(response["output"]):
            event = {"output_index": index, "item": {**item, "status": "in_progress"}}
            yield "response.output_item.added", {"type": "response.output_item.added", **event}
            event = {"output_index": index, "item": item}
            yield "response.output_item.done", {"type": "response.output_item.done", **event}
        yield "response.completed", {"type": "response.completed", "response": response}


class OpenAiChat:
    """OpenAI chat completions."""

    def parse(self, path: str, body: dict[str, Any]) -> Request:
        """Count the messages of tools."""
        calls = sum(message.get("role") == "tool" for message in body.get("messages", []))
        functions = [tool["function"] for tool in body.get("tools") or [] if "function" in tool]
        tools = {function["name"]: _parameters(function.get("parameters")) for function in functions}
        return Request(tools, calls, bool(body.get("stream")), body.get("model", ""))

    def _usage(self) -> dict[str, Any]:
        usage = {"prompt_tokens": INPUT + CACHED, "completion_tokens": OUTPUT, "total_tokens": INPUT + CACHED + OUTPUT}
        return {**usage, "prompt_tokens_details": {"cached_tokens": CACHED}}

    def _message(self, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.call:
            function = {"name": reply.call.name, "arguments": reply.arguments}
            call = {"index": 0, "id": f"call_{reply.number:04d}", "type": "function", "function": function}
            message["tool_calls"] = [call]
        return message

    def document(self, request: Request, reply: Reply) -> dict[str, Any]:
        """Encode a completion."""
        completion = {"id": f"chatcmpl-{reply.number}", "object": "chat.completion", "model": request.model}
        reason = "tool_calls" if reply.call else "stop"
        choice = {"index": 0, "message": self._message(reply), "finish_reason": reason}
        return {**completion, "created": 1, "choices": [choice], "usage": self._usage()}

    def events(self, request: Request, reply: Reply) -> Iterator[Event]:
        """Encode a completion as chunks."""
        ids = {"id": f"chatcmpl-{reply.number}", "object": "chat.completion.chunk", "model": request.model}
        head: dict[str, Any] = {**ids, "created": 1}
        reason = "tool_calls" if reply.call else "stop"
        yield "", {**head, "choices": [{"index": 0, "delta": self._message(reply), "finish_reason": None}]}
        yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        yield "", {**head, "choices": [], "usage": self._usage()}
        yield "", "[DONE]"


class GeminiContent:
    """Gemini's generateContent."""

    def parse(self, path: str, body: dict[str, Any]) -> Request:
        """Count the responses of functions; the path has the model and whether the answer is streamed."""
        parts = [part for content in body.get("contents", []) for part in content.get("parts") or []]
        calls = sum("functionResponse" in part for part in parts)
        declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        tools = {one["name"]: _parameters(one.get("parametersJsonSchema") or one.get("parameters")) for one in declared}
        model, _, method = path.rpartition("/")[2].partition(":")
        return Request(tools, calls, method.startswith("stream"), model)

    def document(self, request: Request, reply: Reply) -> dict[str, Any]:
        """Encode a candidate."""
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        if reply.call:
            parts.append({"functionCall": {"name": reply.call.name, "args": reply.call.arguments}})
        usage = {
            "promptTokenCount": INPUT + CACHED,
            "cachedContentTokenCount": CACHED,
            "candidatesTokenCount": OUTPUT,
            "totalTokenCount": INPUT + CACHED + OUTPUT,
        }
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        answer = {"modelVersion": request.model, "responseId": f"response-{reply.number}"}
        return {**answer, "candidates": [candidate], "usageMetadata": usage}

    def events(self, request: Request, reply: Reply) -> Iterator[Event]:
        """Encode a candidate as the only part."""
        yield "", self.document(request, reply)


def find_api(path: str) -> ModelApi | None:
    """Return the API that answers at a path."""
    apis: dict[str, ModelApi] = {
        "/messages": AnthropicMessages(),
        "/responses": OpenAiResponses(),
        "/chat/completions": OpenAiChat(),
        "enerateContent": GeminiContent(),
    }
    return next((api for end, api in apis.items() if path.endswith(end)), None)
