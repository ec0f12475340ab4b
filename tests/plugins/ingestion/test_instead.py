"""What takes the place of something in everyday words, and what stands beside it."""

from __future__ import annotations

import pytest

from tests.support.ingestion_harness import JUNE, IngestionHarness

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I work at Deloitte", "started a new job at KPMG today"),
        ("We live in Bristol", "we've moved up to Newcastle"),
        ("My mum lives in Derby", "Mum's moved to Stoke"),
        ("My daughter Mia goes to Hillside Primary", "Mia started at Park High School this week"),
        ("My trainer is Paul", "my new trainer is Kim"),
        ("My phone number is 07700 900111", "my new phone number is 07700 900222"),
        ("I'm on sertraline 50mg", "I came off sertraline"),
        ("I'm on warfarin", "I'm no longer on warfarin"),
        ("The team meeting is on Tuesdays at 10", "the team meeting is on Wednesdays now"),
        ("The team meeting is on Tuesdays at 10", "the team meeting has moved to Wednesdays"),
        ("The rent is 900 a month", "rent is 950 now"),
        ("My salary is 30k", "my salary has gone up to 34k"),
        ("The timeout is 30 seconds", "we raised the timeout to 60 seconds"),
        ("Our CI runs on Jenkins", "our CI runs on GitHub Actions now"),
        ("I'm single", "I have a boyfriend now"),
        ("My trainer is Brad", "Brad moved away so my trainer is Jess now"),
        ("My sister Divya lives in Pune", "My sister Divya moved to London"),
        ("I'm engaged to Theo", "we got married on Saturday"),
        ("I prefer tea to coffee", "I prefer coffee these days"),
        ("I prefer tea to coffee", "honestly I prefer coffee to tea now"),
        ("I'm single", "I have a lovely girlfriend now"),
    ],
)
def test_it_takes_the_place(reading: IngestionHarness, first: str, then: str) -> None:
    kept = reading.hear(first)["events"][0]["memory_id"]
    event = reading.hear(then, at=JUNE)["events"][0]
    assert event.get("previous_memory_id") == kept


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("My sister Divya lives in Pune", "My friend Divya moved to London"),
        ("My friend Omar works at Shell", "My cousin Omar left Shell"),
        ("My flat is in York", "my new office is in Leeds"),
        ("The standup is at 9 on Mondays", "the standup is at 11 on Fridays now"),
        ("Mia goes to Hillside Primary", "Mia started at the chess club"),
        ("Mia goes to Hillside Primary", "Mia goes to Sunday school at St Luke's"),
        ("I'm single", "my sister has a boyfriend now"),
        ("I prefer trains to planes", "I prefer window seats these days"),
        ("I prefer tea to coffee", "I prefer coffee in the mornings"),
        ("I'm engaged to Theo", "my brother got married"),
        ("I live in Leeds", "we've moved up to third on the waiting list"),
        ("I have a bike", "I came off my bike"),
        ("I work at Aldi", "started a second job at Lidl"),
        ("I have a dog called Rex", "my new dog is called Fido"),
        ("I have a phone with a cracked screen", "my phone died on the train"),
        ("I use Notion at work", "I use Excel now for my budget"),
        ("My salary is 30k", "my bills went up to 400"),
        ("My lodger is Tim", "my new lodger is Kim"),
        ("My student is Ella", "my new student is Ruby"),
        ("The meeting is on Tuesdays", "the meeting is on Wednesdays now and then"),
        ("Our CI runs on Jenkins", "their CI runs on GitHub Actions now"),
        ("I wear glasses", "I wear a hat these days"),
        ("I take ramipril", "I take vitamins these days"),
        ("I prefer tea to coffee", "sometimes I prefer coffee"),
        ("I prefer tea to coffee", "I prefer coffee when I'm tired"),
        ("I prefer tea to coffee", "I prefer coffee over hot chocolate"),
        ("I prefer Python over Java for scripts", "I prefer Java for big systems"),
        ("I prefer going to the beach", "I prefer the beach"),
        ("I'm single", "I have a tennis partner"),
        ("I'm single", "I have an ex husband"),
        ("I'm single", "I have a gym partner called Sam"),
        ("I'm engaged to Theo", "I was married before"),
        ("I'm on sertraline", "I'm off sertraline for a week"),
        ("I take ramipril", "I'm not off ramipril"),
        ("My weight is 80kg", "my weight dropped to 70kg when I was ill"),
        ("The deadline is Friday", "the deadline moved to Monday for Tom"),
        ("My daughter Mia goes to Hillside Primary", "Mia attends Kumon Academy after school"),
        ("I go to Durham University", "I go to Harvard University library to study"),
        ("I live in Leeds", "I've settled into the London flat for the summer"),
        ("I work at Aldi", "I started a voluntary position at Oxfam"),
        ("I work at Aldi", "I found a job at Lidl that looks interesting"),
        ("I work at Aldi", "I got my first job at Lidl when I was 16"),
        ("My boss is Ana", "Ana's ill, so Luis is my boss for now"),
        ("My boss is Ana", "Ana's on leave, so Luis is my boss this week"),
        ("I live in Leeds", "Tom texted, I live in Stoke now"),
        ("My manager is Ana", "Ana might leave, so Luis is my manager then"),
    ],
)
def test_it_stands_beside(reading: IngestionHarness, first: str, then: str) -> None:
    reading.hear(first)
    events = reading.hear(then, at=JUNE)["events"]
    assert not any(event.get("previous_memory_id") for event in events)
