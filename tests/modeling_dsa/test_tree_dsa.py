"""modeling_dsa.tree_dsa: what a tree learns in training; at prediction it equals its equations like every pooling."""

import torch
from small_models import packing_of, randomize, small_config

from modeling_dsa.tree_dsa import GumbelTreeLSTM


def tree_of() -> GumbelTreeLSTM:
    return randomize(GumbelTreeLSTM(small_config(pooling="gumbel_tree", tree_size=3), 5)).double()


def test_training_draws_other_trees_and_teaches_the_query() -> None:
    tree, packing = tree_of().train(), packing_of([7, 1, 0, 3])
    tokens = torch.randn(11, 5, dtype=torch.float64)
    drawn = [tree(tokens, packing).vectors[0] for _ in range(20)]
    assert len({tuple(vectors[0].tolist()) for vectors in drawn}) > 1
    assert all(torch.equal(vectors[1:3], drawn[0][1:3]) for vectors in drawn)  # one token has one tree
    drawn[0].sum().backward()
    assert tree.query.grad is not None
    assert tree.query.grad.abs().sum() > 0


def test_what_training_draws_is_a_tree_that_prediction_could_have_chosen() -> None:
    """Of three tokens there are two trees; the straight-through sample has the value of one of them."""
    tree, packing = tree_of().train(), packing_of([3])
    tokens = torch.randn(3, 5, dtype=torch.float64)
    drawn = torch.stack([tree(tokens, packing).vectors[0, 0] for _ in range(30)])
    tree.eval()
    found = []
    for sign in (1, -1):  # the query turned around chooses the other
        with torch.no_grad():
            tree.query.mul_(sign)
        found.append(tree(tokens, packing).vectors[0, 0])
    gaps = torch.stack([(drawn - vector).abs().max(1).values for vector in found])
    torch.testing.assert_close(gaps.min(0).values, torch.zeros(30, dtype=torch.float64), rtol=0, atol=1e-12)
