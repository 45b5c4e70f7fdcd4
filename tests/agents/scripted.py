"""A chat model that says what a test has prepared, and a way to play it through a real graph."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.state import CompiledStateGraph
from pydantic import PrivateAttr

type Call = tuple[str, dict[str, Any]]
type Graph = CompiledStateGraph[Any, Any, Any, Any]

_call_numbers = count(1)


class ScriptedModel(BaseChatModel):
    """Answers with the next step of `script` each time it is asked, and with "done" after the last."""

    script: list[AIMessage]
    _next: int = PrivateAttr(default=0)
    _shown: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _tools: list[Any] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def tool_names(self) -> set[str]:
        return {tool["name"] if isinstance(tool, dict) else tool.name for tool in self._tools}

    @property
    def system_text(self) -> str:
        content = self._shown[0][0].content
        if isinstance(content, str):
            return content
        return "".join(block["text"] for block in content if isinstance(block, dict) and "text" in block)

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        self._tools = list(tools)
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        self._shown.append(list(messages))
        step = self.script[self._next] if self._next < len(self.script) else AIMessage(content="done")
        self._next += 1
        return ChatResult(generations=[ChatGeneration(message=step)])


def model_calling(*steps: Call | list[Call]) -> ScriptedModel:
    """A model that makes one tool call a step, or several in parallel where a step is a list."""
    return ScriptedModel(script=[_message(step if isinstance(step, list) else [step]) for step in steps])


def _message(calls: list[Call]) -> AIMessage:
    return AIMessage(
        content="",
        tool_calls=[
            {"id": f"call-{next(_call_numbers)}", "name": name, "args": args, "type": "tool_call"}
            for name, args in calls
        ],
    )


class Answer(NamedTuple):
    """What a tool answered: "success" or "error", and its text."""

    status: str
    content: str


def answers_of(graph: Graph, *, in_loop: bool = False) -> list[Answer]:
    """Run the graph, with `ainvoke` when `in_loop`; the tools' answers in order."""
    start = {"messages": [HumanMessage(content="go")]}
    state = asyncio.run(graph.ainvoke(start)) if in_loop else graph.invoke(start)
    answers = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    return [Answer(message.status, str(message.content)) for message in answers]
