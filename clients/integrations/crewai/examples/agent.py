"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each turn is a task of a crew; the memory is what leads from one to another. The model is scripted:
it answers from the memories in its task. Give the agent a model of yours in its place.
"""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import Agent, BaseLLM, Crew, Task
from mneme_crewai import MnemeMemory

TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]
MEMORY = re.compile(r"^- \(score=[\d.]+\) (.+)$", re.MULTILINE)


class Scripted(BaseLLM):
    """Answers a question by the first memory in its task, a statement with a nod."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        prompt = messages if isinstance(messages, str) else messages[-1]["content"]
        known = MEMORY.search(prompt)
        asked = "?" in prompt.split("Relevant memories:")[0]
        return f"Final Answer: You said: {known[1]}" if asked and known else "Final Answer: Noted."


def main() -> None:
    user_id = uuid.uuid4().hex
    for number, conversation in enumerate(TALK, 1):
        print(f"Conversation {number}")
        # What the user said is kept; what came of a task is not.
        memory = MnemeMemory(user_id=user_id)
        read_only = MnemeMemory(user_id=user_id, read_only=True)
        agent = Agent(
            role="assistant",
            goal="Help the user",
            backstory="You know the user well.",
            llm=Scripted(model="scripted"),
        )
        for said in conversation:
            task = Task(description=said, expected_output="A short answer", agent=agent)
            answer = Crew(agents=[agent], tasks=[task], memory=read_only).kickoff()
            print(f"> {said}\n{answer.raw}")
            if not said.endswith("?"):
                memory.remember(said)


if __name__ == "__main__":
    main()
