"""How much each part of `hops` counts beside the others: its length, from deleted edges and without labels."""

from __future__ import annotations

from dataclasses import dataclass

# Neighbours whose features agree as much as this are trusted to be of one kind.
FULL_AGREEMENT = 0.28
# As much as this at hop 0, and what a node says itself is told by its neighbours.
FULLY_TOLD = 0.14
HOP0, HOP1 = (1.0, 0.2), (0.5, 0.0)  # beside H of length one: where neighbours do not tell them, and where they do
STRUCTURE_FACTOR, STRUCTURE_MOST = 0.4, 1.5
# Features of fewer directions are shorter, and the place of a node's surroundings takes over: one column must not drown
# the rest. Where neighbours do not agree, and where they do: there features look better than they are.
FEW_DIRECTIONS = (16, 128)
# What features of many directions are taken to know of a node even where neighbours do not agree: a graph that is not
# about the features must not drown them.
KNOWN_ALONE = 0.1


@dataclass(frozen=True)
class Told:
    """What deleted edges tell.

    Args:
        agreement: of what is propagated, at the two ends of a deleted edge (`EndSums`).
        agreement_here: of the features themselves, at hop 0.
        strength: how well places foretell edges that were hidden.
    """

    agreement: float
    agreement_here: float
    strength: float

    @property
    def trust(self) -> float:
        """How far a node's neighbours can be taken to be of its kind, 0 to 1: as far as their features agree."""
        return min(1.0, self.agreement / FULL_AGREEMENT)

    def lengths(self, trained: int, hop0: int, hop1: int) -> list[float]:
        """Of the trained part, hop 0, hop 1, the coordinates and those of a node's surroundings.

        Args:
            trained, hop0, hop1: how many directions of features each of the first three has.
        """
        told = min(self.trust, self.agreement_here / FULLY_TOLD)
        beside = [apart + (alike - apart) * told for apart, alike in (HOP0, HOP1)]
        few = FEW_DIRECTIONS[0] + (FEW_DIRECTIONS[1] - FEW_DIRECTIONS[0]) * self.trust
        shorter = [min(width / few, 1) for width in (trained, hop0, hop1)]
        # Few directions that agree do not tell who is with whom: the place in the graph counts the more.
        wide = min(trained / FEW_DIRECTIONS[1], 1)
        known = max(self.agreement * shorter[0], KNOWN_ALONE * wide**2, 1e-3)
        structure = min(STRUCTURE_MOST, STRUCTURE_FACTOR * self.strength / known)
        places = (structure * shorter[0], structure * (1 - shorter[0]))
        return [*(length * factor for length, factor in zip((1.0, *beside), shorter)), *places]
