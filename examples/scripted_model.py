"""A chat model that follows a script: the examples need no other. MEMSVC_MODEL=provider:name takes a real one."""

import os
import re
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

# What the model says, given what the last tool answered.
type Step = Callable[[str], AIMessage]


class ScriptedModel(BaseChatModel):
    """Takes the steps in order."""

    steps: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        done = sum(isinstance(message, AIMessage) for message in messages)
        seen = next((message.text for message in reversed(messages) if isinstance(message, ToolMessage)), "")
        return ChatResult(generations=[ChatGeneration(message=self.steps[done](seen))])


def model(*steps: Step) -> str | BaseChatModel:
    """The model that MEMSVC_MODEL names, or one that takes these steps."""
    return os.environ.get("MEMSVC_MODEL") or ScriptedModel(steps=list(steps))


def calls(tool: str, *several: Callable[[str], dict[str, Any]] | dict[str, Any]) -> Step:
    """Call a tool once for each set of arguments, in one turn."""

    def step(seen: str) -> AIMessage:
        arguments = [each(seen) if callable(each) else each for each in several]
        made = [{"name": tool, "args": each, "id": token_hex(8), "type": "tool_call"} for each in arguments]
        return AIMessage("", tool_calls=made)

    return step


def says(make: Callable[[str], str]) -> Step:
    return lambda seen: AIMessage(make(seen))


def id_in(hits: str) -> str:
    """The id of the first entry in the answer of `memory_search`."""
    found = re.search(r"\[(mem_[^\]]+)\]", hits)
    return found.group(1) if found else ""
