"""
A classifier's sets, with ease
==============================

A classifier that is 89 % accurate is wrong in one case of nine. A *label set* says more than one
label where the case is hard: the true label is to be in the set in 90 % of cases. This page makes
such sets by conformal prediction, finds that the 90 % fails where cases are hard, and makes sets
that do better there.

The data are the 1,797 handwritten digits that come with scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import howsure

# %%
# The classifier
# --------------
#
# It learns from 120 digits alone, so that some cases are hard. Half of the others are held out,
# and half are the test.

digits = load_digits()
X, label = digits.data / 16, np.array([f"d{digit}" for digit in digits.target])
train, rest = train_test_split(np.arange(len(label)), train_size=120, random_state=0)
held_out, test = rest[:838], rest[838:]

model = LogisticRegression(C=0.3, max_iter=500).fit(X[train], label[train])
proba = model.predict_proba(X)
print(f"accuracy on the test rows: {model.score(X[test], label[test]):.1%}")

# %%
# How easy is a case?
# -------------------
#
# Disturb the input a little, many times, and see whether the output moves. The mean cosine
# similarity of the disturbed outputs to the original one is the *ease*: near 1 where the model
# does not care. No label is read.

ease = howsure.metrics.ease(model.predict_proba, X, 0.2)

hard = ease[test] <= np.quantile(ease[test], 0.1)
right = model.predict(X[test]) == label[test]
print(
    f"accuracy where ease is lowest: {right[hard].mean():.0%}; elsewhere: {right[~hard].mean():.0%}"
)
assert right[hard].mean() < right[~hard].mean()

# %%
# Sets that cover
# ---------------
#
# A table of predictions has a column for each class, ``p_d0`` … ``p_d9``. The method ``lac`` takes
# all labels whose probability exceeds one threshold. The threshold is learnt from held-out rows.


def table(rows):
    """The columns that howsure reads: the label, the ease, and the class probabilities."""
    columns = {f"p_{name}": proba[rows, i] for i, name in enumerate(model.classes_)}
    return {"y": label[rows], "ease": ease[rows], **columns}


lac = howsure.conformal(table(test), table(held_out), method="lac", coverage=0.9)
print(lac)
print(lac.predictions["set_90"][:12].tolist())

# %%
# Do they cover where cases are hard?
# -----------------------------------
#
# Since the table has a column ``ease``, the verdict has a finding on it.

plain = howsure.assess(lac.table)
for finding in plain.findings:
    print(f"{finding.state:11} {finding.sentence}")

(found,) = [finding for finding in plain.findings if finding.id == "ease"]
assert found.state == "bad"

# %%
# Over all rows the sets cover as promised. Where cases are hard they do not. The guarantee was
# about all rows together, and it was kept.

plain.plot("coverage_by_ease")
plt.show()

# %%
# A threshold for each bin of ease
# --------------------------------
#
# ``o_saps`` divides rows into bins by ease and learns a threshold in each. Half of the held-out
# rows choose the bins and the penalty on large sets; the other half calibrates, so the guarantee
# holds in each bin.

binned = howsure.conformal(table(test), table(held_out), method="o_saps", ease="ease")
print(binned)

by_ease = howsure.assess(binned.table)
for name, result in (("lac", plain), ("o_saps", by_ease)):
    (found,) = [finding for finding in result.findings if finding.id == "ease"]
    coverage, size = result.value("empirical_coverage"), result.value("set_size")
    print(f"{name:7} covers {coverage:.1%} with {size:.2f} labels a set; ease: {found.state}")
assert found.state != "bad"

# %%
by_ease.plot("coverage_by_ease")
plt.show()

# %%
# The same at the command line
# ----------------------------
#
# .. code-block:: console
#
#    $ howsure conformal new.csv --calibration held.csv --method o_saps --ease ease -o sets.csv
#    $ howsure assess sets.csv
#
# What was decided
# ----------------
#
# Take ``o_saps``. Its sets are larger on average, and no bin of ease is proven to fall short. Sets
# of zero labels remain a fault: they are rows for which no label reached its threshold. Treat them
# as "cannot say".

assert by_ease.value("set_size") > plain.value("set_size")
(sets,) = [finding for finding in by_ease.findings if finding.id == "sets"]
assert "Sets of 0 labels" in sets.sentence
print(sets.sentence)

# %%
# Where to go next:
#
# - ``howsure conformal --help`` lists the other methods; :doc:`the page on recalibration
#   </recalibrate>` says what each needs;
# - the finding ``ease`` has :doc:`a page </findings/ease>`: how it is detected, why it matters,
#   how to lessen it;
# - for a regression with an sd, ``o_cpa`` and ``o_pac`` do the same to intervals.
