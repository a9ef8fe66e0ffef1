"""Review questions and what each answer would do; docs/curation.md#review.

`kinds` is the table of all kinds; each kind has its search, questions and answers in one file. `search` runs the
searches step by step, `queue` puts the questions in order by their `impact`, `asking` and `answer` have what all kinds
share.
"""
