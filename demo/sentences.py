# SPDX-License-Identifier: BSD-3-Clause
"""What the demo embeds: short and long, the last one a query."""

QUERY = "How do I keep bread fresh?"

SENTENCES = (
    "Bread.",
    "A loaf stays soft for days in a wooden box or wrapped in a cotton cloth.",
    "Keep onions and potatoes apart; both last longer in a dark, dry and airy place.",
    "The train to the coast leaves at seven.",
    "Sliced loaves can be frozen and toasted one piece at a time, which hardly changes their "
    "taste, whereas the refrigerator makes the crumb go stale sooner than the kitchen shelf does, "
    "because starch crystallises fastest a little above the freezing point of water.",
    "She tuned the guitar by ear.",
)
