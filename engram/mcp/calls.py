"""Tools made of functions: what they are given is checked, and what goes wrong is said."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import ToolAnnotations
from pydantic import ValidationError
from typing_extensions import ParamSpec

from engram.errors import EngramError
from engram.mcp.options import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.mcpserver import Context

__all__ = ["StoreTool", "store_tool"]

TICK: Final = 1.0
"""Seconds between two notices to a client that asked for progress."""

_MOST_REFUSED = 5

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def store_tool(
    function: Callable[..., Any],
    *,
    title: str,
    description: str,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
) -> Tool:
    """Return the tool that a function is.

    The function's name, parameters and result are the tool's; it runs on a thread of its own and
    may take as long as it likes. A parameter that it has not is refused. What it raises reaches the
    client as a tool error: the text of an `EngramError`, of anything else the type alone, for its
    text may quote what is stored.

    Args:
        function: A plain function; its annotations are evaluated, so their names must be there at
            run time.
        title: For people.
        description: For the model; a constant.
        read_only: Whether it leaves all memories as they are; that one was found may be noted.
        destructive: Whether it takes away what is stored.
        idempotent: Whether a repetition changes nothing more.
    """
    made = StoreTool.from_function(
        _telling(function),
        title=title,
        description=description,
        annotations=ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=read_only or idempotent,
            open_world_hint=False,
        ),
    )
    metadata = made.fn_metadata
    metadata.arg_model.model_config["extra"] = "forbid"
    metadata.arg_model.model_rebuild(force=True)
    made.fn_metadata = _Metadata(
        arg_model=metadata.arg_model,
        output_schema=_without(metadata.output_schema, "title", "description"),
        output_model=metadata.output_model,
        wrap_output=metadata.wrap_output,
    )
    made.parameters = {"additionalProperties": False, **_without(made.parameters, "title")}
    return made


def _without(part: Any, *texts: str) -> Any:
    """Return a part of a schema without texts that repeat names: every conversation pays for them.

    Args:
        part: The part; a property may have the name of such a text.
        texts: The keywords.
    """
    if isinstance(part, list):
        return [_without(one, *texts) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _without(one, *texts)
        for name, one in part.items()
        if name not in texts or isinstance(one, dict)
    }


def _telling(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Return a function whose failures are tool errors."""

    @functools.wraps(function)
    def told(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except ToolError:
            raise
        except EngramError as error:
            raise ToolError(str(error)) from error
        except Exception as error:
            kind = type(error).__name__
            say(f"{function.__name__} failed: {kind}")
            message = f"it failed for a reason that is not the caller's: {kind}"
            raise ToolError(message) from error

    return told


class _Metadata(FuncMetadata):
    """Takes a text for a text.

    The SDK reads every text that could be JSON as JSON, so that some clients' lists arrive. A
    memory whose text is JSON would become an object, or null.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return arguments, lists that arrived as JSON read."""
        parsed = super().pre_parse_json(data)
        return {
            name: parsed[name] if self._takes_list(name) else value for name, value in data.items()
        }

    def _takes_list(self, name: str) -> bool:
        field = self.arg_model.model_fields.get(name)
        return field is not None and "list[" in str(field.annotation)


class StoreTool(Tool):
    """A tool that tells how long it has been at work, and briefly what it was given wrongly."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run the tool.

        Raises:
            ToolError: It failed, or an argument is refused.
        """
        failure: ToolError | None = None
        result: Any = None
        async with anyio.create_task_group() as group:
            group.start_soon(_tick, context)
            try:
                result = await super().run(arguments, context, convert_result)
            except ToolError as error:
                failure = error
            group.cancel_scope.cancel()
        if failure is None:
            return result
        if isinstance(failure.__cause__, ValidationError):
            known = self.parameters["properties"]
            message = f"Error executing tool {self.name}: {_refusal(failure.__cause__, known)}"
            raise ToolError(message) from None
        raise failure


async def _tick(context: Context[Any, Any]) -> None:
    """Tell a client that asked for it how many seconds a call has taken, until cancelled."""
    begun = anyio.current_time()
    while True:
        await anyio.sleep(TICK)
        await context.report_progress(round(anyio.current_time() - begun, 1), message="at work")


def _refusal(error: ValidationError, known: Iterable[str]) -> str:
    """Say which arguments are refused and why, without what the caller sent: a name is that too."""
    takes = ", ".join(known) or "none"
    refused = dict.fromkeys(
        f"an unknown parameter; it takes {takes}"
        if one["type"] == "extra_forbidden"
        else f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
    more = len(refused) - _MOST_REFUSED
    return "; ".join([*refused][:_MOST_REFUSED]) + (f"; and {more} more" if more > 0 else "")
