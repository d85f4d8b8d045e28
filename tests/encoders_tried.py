"""Encoders that tests name as plans and command lines do: ``encoders_tried:NAME``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from extras import needs
from howsure.core.arrays import FloatArray

TOPICS: Final = (
    *("scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.special"),
    *("scipy.stats", "sklearn.metrics"),
)


def brightness(images: Sequence[Any]) -> FloatArray:
    """Mean and spread of each image, or of each row of numbers."""
    return np.array([[np.mean(image) / 255.0, np.std(image) / 255.0] for image in images])


def broken(images: Sequence[Any]) -> FloatArray:
    """Fails on everything."""
    raise ValueError(f"cannot take {len(images)} items")


class Rows:
    """Something with a method transform."""

    def transform(self, x: Any, /) -> FloatArray:
        """The numbers themselves."""
        return np.asarray(x, dtype=np.float64)


ROWS = Rows()


@cache
def library_sentences() -> tuple[tuple[str, ...], npt.NDArray[np.str_]]:
    """What libraries that are always there say of their functions, and of which module each is."""
    texts: dict[str, str] = {}
    for topic in TOPICS:
        module = importlib.import_module(topic)
        for name in sorted(module.__all__):
            words = inspect.getdoc(getattr(module, name)) or ""
            for paragraph in words.split("\n\n")[:3]:
                text = " ".join(paragraph.split())
                if 30 <= len(text) <= 400 and text[0].isupper() and "(x" not in text:
                    texts.setdefault(text, topic)
                    break
    return tuple(texts), np.array(list(texts.values()))


def halves(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows to learn from, and rows to judge by."""
    order = np.random.default_rng(0).permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])


@cache
def _learned() -> Any:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    texts, _ = library_sentences()
    parts = TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(3, 4))
    vectors = TruncatedSVD(50, random_state=0)
    return make_pipeline(parts, vectors).fit([texts[row] for row in halves(len(texts))[0]])


def sentences(texts: Sequence[str]) -> FloatArray:
    """A static embedding of parts of words, learned from half of those sentences alone.

    A text's vector is the weighted sum of the vectors of its three and four letters in a row; of
    which module a text is, was not seen.
    """
    return np.asarray(_learned().transform(list(texts)))


@cache
def digits() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Handwritten digits of scikit-learn, 8 by 8 pixels, as RGB; and which digit each is."""
    from sklearn.datasets import load_digits

    held = load_digits()
    grey = np.rint(held.images * (255.0 / 16.0)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=3), held.target


def train_network(seed: int = 0) -> Any:
    """A convolutional network for half of the digits; its body gives 32 features."""
    torch = needs("torch")
    nn = torch.nn
    images, labels = digits()
    rows = halves(len(labels))[0]
    x = torch.tensor(images[rows].transpose(0, 3, 1, 2) / 255.0, dtype=torch.float32)
    y = torch.tensor(labels[rows])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        model = nn.Sequential(body, nn.Linear(32, 10))
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(15):
            for part in torch.randperm(len(y)).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(x[part]), y[part]).backward()
                optimiser.step()
    return body.eval()


def write_onnx(body: Any, path: Path) -> None:
    """Such a network's body as an ONNX file, layer by layer."""
    onnx = needs("onnx")
    make, real = onnx.helper, onnx.TensorProto.FLOAT
    nodes, weights, last = [], [], "pixels"
    for place, layer in enumerate(body):
        kind, own, options = type(layer).__name__, [], {}
        if kind == "Conv2d":
            options = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
            for name, value in layer.named_parameters():
                own.append(f"{name}{place}")
                array = value.detach().numpy()
                weights.append(onnx.numpy_helper.from_array(array, own[-1]))
        elif kind == "MaxPool2d":
            options = {"kernel_shape": [2, 2], "strides": [2, 2]}
        word = {"Conv2d": "Conv", "ReLU": "Relu", "MaxPool2d": "MaxPool"}
        word |= {"AdaptiveAvgPool2d": "GlobalAveragePool", "Flatten": "Flatten"}
        nodes.append(make.make_node(word[kind], [last, *own], [f"out{place}"], **options))
        last = f"out{place}"
    pixels = make.make_tensor_value_info("pixels", real, ["n", 3, "h", "w"])
    vectors = make.make_tensor_value_info(last, real, ["n", 32])
    graph = make.make_graph(nodes, "body", [pixels], [vectors], weights)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
