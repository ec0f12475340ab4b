"""Mneme for the OpenAI Agents SDK.

    session = MnemeSession("chat-7", user_id="ada")
    agent = Agent(name="assistant", tools=[session.recall_tool()])
    await Runner.run(agent, "I eat no nuts.", session=session)

`MnemeSession` is a `Session`: it keeps the items of a conversation, in order. Its tool lets the
agent look up what the user's earlier conversations said.
"""

from .session import MnemeSession

__all__ = ["MnemeSession"]
