"""Encoders: texts, images and tables to vectors, against models run by hand; no download."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoders_tried import brightness
from extras import needs
from generated import examples
from howsure.core.errors import HowsureWarning, InputError, MissingDependencyError
from howsure.core.progress import subscribe
from howsure.inputs.encoders import encode, tabular_encoder
from howsure.inputs.encoders.encode import opened

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "cat", "dog"]
TEXTS = ["cat dog", "a", "a b c cat dog a", "dog", "b c b c"]
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def torch() -> Iterator[Any]:
    library = needs("torch")
    with library.random.fork_rng():  # the models' weights are drawn here, the same every time
        library.manual_seed(0)
        yield library


@pytest.fixture(scope="module")
def hugging(torch: Any) -> Any:
    return needs("transformers")


@pytest.fixture(scope="module")
def make(hugging: Any, torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a tiny random model to a folder, with what prepares its inputs."""

    def build(model: Any, *, brackets: bool = True) -> Path:
        from tokenizers import Tokenizer, models, pre_tokenizers, processors

        folder = tmp_path_factory.mktemp("model")
        model.save_pretrained(folder)
        words = Tokenizer(
            models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
        )
        words.pre_tokenizer = pre_tokenizers.Whitespace()
        if brackets:
            words.post_processor = processors.TemplateProcessing(
                single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
            )
        named = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[SEP]"}
        hugging.PreTrainedTokenizerFast(tokenizer_object=words, **named).save_pretrained(folder)
        size = {"height": 16, "width": 16}
        hugging.CLIPImageProcessor(size=size, crop_size=size).save_pretrained(folder)
        return Path(folder)

    return build


@pytest.fixture(scope="module")
def bert(hugging: Any, make: Callable[..., Path]) -> Path:
    config = hugging.BertConfig(vocab_size=len(WORDS), max_position_embeddings=12, **SMALL)
    return make(hugging.BertForMaskedLM(config))  # which has no pooling layer


@pytest.fixture(scope="module")
def vision(hugging: Any, make: Callable[..., Path]) -> Path:
    config = hugging.CLIPVisionConfig(image_size=16, patch_size=8, projection_dim=8, **SMALL)
    return make(hugging.CLIPVisionModel(config))


@pytest.fixture(scope="module")
def clip(hugging: Any, make: Callable[..., Path]) -> Path:
    text = {"max_position_embeddings": 12, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    config = hugging.CLIPConfig(
        text_config={**SMALL, **text, "vocab_size": len(WORDS)},
        vision_config={**SMALL, "image_size": 16, "patch_size": 8, "projection_dim": 8},
        projection_dim=8,
    )
    return make(hugging.CLIPModel(config))


@pytest.fixture(scope="module")
def siglip(hugging: Any, make: Callable[..., Path]) -> Path:
    text = {"max_position_embeddings": 12, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    config = hugging.SiglipConfig(
        text_config={**SMALL, **text, "vocab_size": len(WORDS)},
        vision_config={**SMALL, "image_size": 16, "patch_size": 8},
    )
    return make(hugging.SiglipModel(config))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here must do without a connection."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a test tried to reach the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


def normalised(torch: Any) -> Any:
    """The pixels as CLIP wants them, by hand."""
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    sd = np.array([0.26862954, 0.26130258, 0.27577711])
    scaled = (PIXELS / 255.0 - mean) / sd
    return torch.tensor(scaled.transpose(0, 3, 1, 2), dtype=torch.float32)


def copy(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target / "copy"))


class TestTexts:
    def test_a_text_is_the_mean_of_its_tokens_states(
        self, bert: Path, hugging: Any, torch: Any
    ) -> None:
        model = hugging.BertModel.from_pretrained(bert, add_pooling_layer=False).eval()
        got = encode(TEXTS, f"transformers:{bert}")
        assert got.dtype == np.float32
        assert got.shape == (5, 16)
        for row, text in enumerate(TEXTS):
            tokens = [2, *(WORDS.index(word) for word in text.split()), 3]
            with torch.no_grad():
                states = model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
            np.testing.assert_allclose(got[row], states.mean(dim=0).numpy(), atol=2e-6)

    @pytest.mark.parametrize("size", [1, 2, 100])
    def test_batches_change_nothing(self, bert: Path, clip: Path, siglip: Path, size: int) -> None:
        for folder in (bert, clip, siglip):  # the last pools the last place, padding or not
            whole = encode(TEXTS, f"transformers:{folder}", batch_size=3)
            parts = encode(TEXTS, f"transformers:{folder}", batch_size=size)
            np.testing.assert_allclose(parts, whole, atol=2e-6)

    def test_joint_models_give_their_own_text_vector(
        self, clip: Path, hugging: Any, torch: Any
    ) -> None:
        model = hugging.CLIPModel.from_pretrained(clip).eval()
        got = encode(TEXTS, f"transformers:{clip}", kind="text")
        for row, text in enumerate(TEXTS):
            tokens = [2, *(WORDS.index(word) for word in text.split()), 3]
            with torch.no_grad():
                pooled = model.text_model(input_ids=torch.tensor([tokens])).pooler_output
                want = model.text_projection(pooled)[0].numpy()
            np.testing.assert_allclose(got[row], want, atol=2e-6)

    def test_long_texts_are_counted_in_a_warning(self, bert: Path) -> None:
        cut, exact = "a " * 11, "a " * 10  # with the two brackets 13 and 12 tokens
        with pytest.warns(HowsureWarning, match="^1 of 2 texts are longer than the 12 tokens"):
            got = encode([cut, exact], f"transformers:{bert}")
        np.testing.assert_allclose(got[0], got[1], atol=2e-6)

    def test_positions_counted_after_paddings_shorten_texts(
        self, hugging: Any, make: Callable[..., Path]
    ) -> None:
        config = hugging.RobertaConfig(
            vocab_size=len(WORDS), max_position_embeddings=12, pad_token_id=1, **SMALL
        )
        folder = make(hugging.RobertaModel(config))
        with pytest.warns(HowsureWarning, match="10 tokens"):
            encode(["a " * 30], f"transformers:{folder}")

    def test_encoders_of_sequence_models_and_causal_models_serve(
        self, hugging: Any, make: Callable[..., Path]
    ) -> None:
        t5 = hugging.T5Config(
            vocab_size=10, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0
        )
        gpt = hugging.GPT2Config(
            vocab_size=10, n_embd=16, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=3
        )
        for model in (hugging.T5Model(t5), hugging.GPT2Model(gpt)):
            folder = make(model)
            alone = [encode([text], f"transformers:{folder}")[0] for text in TEXTS]
            np.testing.assert_allclose(encode(TEXTS, f"transformers:{folder}"), alone, atol=2e-6)

    def test_a_text_without_tokens_is_named(self, hugging: Any, make: Callable[..., Path]) -> None:
        config = hugging.BertConfig(vocab_size=len(WORDS), **SMALL)
        folder = make(hugging.BertModel(config), brackets=False)
        with pytest.raises(InputError, match="at least one token; 1 have none"):
            encode(["a", " "], f"transformers:{folder}")


class TestImages:
    def test_a_vision_tower_gives_its_pooled_output(
        self, vision: Path, hugging: Any, torch: Any
    ) -> None:
        model = hugging.CLIPVisionModel.from_pretrained(vision).eval()
        with torch.no_grad():
            want = model(pixel_values=normalised(torch)).pooler_output.numpy()
        np.testing.assert_allclose(encode(PIXELS, f"transformers:{vision}"), want, atol=5e-6)

    def test_joint_models_and_projecting_towers_give_projected_vectors(
        self, clip: Path, hugging: Any, torch: Any, make: Callable[..., Path]
    ) -> None:
        model = hugging.CLIPModel.from_pretrained(clip).eval()
        tower = hugging.CLIPVisionModelWithProjection.from_pretrained(clip)
        with torch.no_grad():
            pooled = model.vision_model(pixel_values=normalised(torch)).pooler_output
            want = model.visual_projection(pooled).numpy()
        for folder in (clip, make(tower)):
            got = encode(PIXELS, f"transformers:{folder}")
            np.testing.assert_allclose(got, want, atol=5e-6)

    def test_convolutional_models_serve(
        self, hugging: Any, torch: Any, make: Callable[..., Path]
    ) -> None:
        config = hugging.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
        folder = make(hugging.ResNetModel(config))
        model = hugging.ResNetModel.from_pretrained(folder).eval()
        with torch.no_grad():
            want = model(pixel_values=normalised(torch)).pooler_output[:, :, 0, 0].numpy()
        np.testing.assert_allclose(encode(PIXELS, f"transformers:{folder}"), want, atol=5e-6)

    def test_a_pooling_layer_without_weights_is_not_used(
        self, hugging: Any, torch: Any, make: Callable[..., Path]
    ) -> None:
        config = hugging.ViTConfig(image_size=16, patch_size=8, **SMALL)
        folder = make(hugging.ViTForImageClassification(config))  # which has no pooling layer
        model = hugging.ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
        with torch.no_grad():
            want = model(pixel_values=normalised(torch)).last_hidden_state.mean(dim=1).numpy()
        np.testing.assert_allclose(encode(PIXELS, f"transformers:{folder}"), want, atol=5e-6)

    @pytest.mark.parametrize("size", [1, 2, 5])
    def test_batches_change_nothing(self, vision: Path, size: int) -> None:
        whole = encode(PIXELS, f"transformers:{vision}")
        parts = encode(PIXELS, f"transformers:{vision}", batch_size=size)
        np.testing.assert_allclose(parts, whole, atol=2e-6)


def flat(images: list[np.ndarray]) -> np.ndarray:
    return np.array([image.ravel() for image in images], dtype=float)


class TestImageItems:
    def test_files_and_arrays_are_one(self, tmp_path: Path) -> None:
        image = needs("PIL.Image")
        paths = [tmp_path / f"{row}.PNG" for row in range(5)]
        for path, pixels in zip(paths, PIXELS, strict=True):
            image.fromarray(pixels).save(path)
        want = PIXELS.reshape(5, -1)
        for items in (paths, [str(path) for path in paths], PIXELS, list(PIXELS), PIXELS / 255.0):
            np.testing.assert_array_equal(encode(items, flat, kind="image", batch_size=2), want)

    def test_models_take_strings_that_end_like_image_files_for_images(
        self, tmp_path: Path, vision: Path, bert: Path
    ) -> None:
        image = needs("PIL.Image")
        image.fromarray(PIXELS[0]).save(tmp_path / "0.png")
        path = str(tmp_path / "0.png")
        got = encode([path], f"transformers:{vision}")
        np.testing.assert_array_equal(got, encode(PIXELS[:1], f"transformers:{vision}"))
        assert encode(["cat.png"], f"transformers:{bert}", kind="text").shape == (1, 16)
        with pytest.raises(InputError, match="1 of 2 strings end like image files"):
            encode([path, "see fig 2"], f"transformers:{vision}")

    def test_grey_and_transparent_images_become_rgb(self) -> None:
        grey = PIXELS[..., 0]
        want = np.repeat(grey[..., None], 3, axis=3).reshape(5, -1)
        for images in (grey, grey[..., None], grey.astype(np.int64), grey / 255.0):
            np.testing.assert_array_equal(encode(images, flat, kind="image"), want)
        clear = np.concatenate([PIXELS, np.zeros((5, 16, 16, 1), np.uint8)], axis=3)
        np.testing.assert_array_equal(encode(clear, flat, kind="image"), PIXELS.reshape(5, -1))

    def test_orientation_tags_are_heeded(self, tmp_path: Path) -> None:
        image = needs("PIL.Image")
        exif = image.Exif()
        exif[0x0112] = 3  # upside down
        image.fromarray(PIXELS[0]).save(tmp_path / "turned.png", exif=exif)
        got = encode([tmp_path / "turned.png"], flat, kind="image")
        np.testing.assert_array_equal(got[0], PIXELS[0, ::-1, ::-1].ravel())

    def test_missing_and_broken_files_are_counted_and_named(self, tmp_path: Path) -> None:
        image = needs("PIL.Image")
        names = ["good.png", "cut.png", "text.png", "fine.png", "deep.png"]
        good, cut, text, fine, deep = paths = [tmp_path / name for name in names]
        for path in (good, cut, fine):
            image.fromarray(PIXELS[0]).save(path)
        cut.write_bytes(good.read_bytes()[:300])
        text.write_text("no image")
        image.fromarray(np.full((4, 4), 40_000, dtype=np.uint16)).save(deep)
        with pytest.raises(InputError, match="3 of 5 are not") as caught:
            encode(paths, flat, kind="image", batch_size=2)
        assert [str(path) in str(caught.value) for path in paths] == [
            False,
            True,
            True,
            False,
            True,
        ]
        with pytest.raises(InputError, match="more than 8 bits"):
            encode([deep], flat, kind="image")
        gone = [tmp_path / ("x" * 150) / f"{row}.png" for row in range(6)]
        with pytest.raises(
            InputError, match=r"7 of 8 are missing: .*x/4\.png' and 2 more"
        ) as caught:
            encode([*gone, good, tmp_path], flat, kind="image")
        assert "5.png" not in str(caught.value)

    @pytest.mark.parametrize(
        ("images", "message"),
        [
            (PIXELS[0], "looks like one image"),
            (PIXELS.transpose(0, 3, 1, 2), "1, 3 or 4 channels, in the last dimension"),
            (PIXELS[0, 0], "must have shape"),
            (PIXELS * 1.0, "must be between 0 and 1, got 0 to 255"),
            (PIXELS.astype(int) - 1, "must be between 0 and 255"),
            (np.full((1, 4, 5), np.nan), "must be between 0 and 1, got nan"),
            (PIXELS.astype(complex), "numbers"),
            (PIXELS[:0], "must have pixels"),
            ([PIXELS[0], PIXELS[1, :8]], "one shape, got 2"),
            ([PIXELS[0], "a.png"], "all texts, all paths or all image arrays, got ndarray, str"),
        ],
    )
    def test_what_is_no_set_of_images_is_refused(self, images: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            encode(images, flat, kind="image")


class TestDoor:
    def test_a_kind_that_the_model_does_not_take_is_refused(self, bert: Path, vision: Path) -> None:
        with pytest.raises(InputError, match=r"accepts \(text\), got 'image'"):
            encode(PIXELS, f"transformers:{bert}")
        with pytest.raises(InputError, match=r"accepts \(image\), got 'text'"):
            encode(["a"], f"transformers:{vision}")
        with pytest.raises(InputError, match="kind 'text' needs strings, got images"):
            encode(PIXELS, f"transformers:{bert}", kind="text")
        with pytest.raises(InputError, match="kind 'text' needs strings"):
            encode([Path("a.png")], f"transformers:{bert}", kind="text")

    @pytest.mark.parametrize(
        ("items", "message"),
        [
            ([], "items must not be empty"),
            ("a text", "must be a sequence"),
            ({"a": 1}, "must be a sequence"),
            (3, "must be a sequence"),
            (["a", None, float("nan")], "items must not be missing; 2 are .first at row 1"),
            (["a", 1], "got int, str"),
            (["a", "\ud800"], "Unicode text, got .* at row 1"),
        ],
    )
    def test_what_is_no_set_of_texts_is_refused(self, items: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            encode(items, "transformers:never-loaded", kind="text")

    @pytest.mark.parametrize("encoder", ["bert", "transformers:", ":a", None, 3, "builtins:dict"])
    def test_unknown_encoders_are_refused(self, encoder: Any) -> None:
        with pytest.raises(InputError, match="encoder must be 'transformers:NAME'"):
            encode(["a"], encoder)

    def test_a_name_stands_for_what_a_module_holds(self) -> None:
        shown = encode(PIXELS, "encoders_tried:brightness", kind="image", batch_size=2)
        np.testing.assert_array_equal(shown, encode(PIXELS, brightness, kind="image"))
        rows = np.arange(6.0).reshape(3, 2)
        np.testing.assert_array_equal(encode(rows, "encoders_tried:ROWS"), rows)
        np.testing.assert_array_equal(encode(rows, "encoders_tried:ROWS.transform"), rows)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("keras_of_old:a", "encoder 'keras_of_old:a' cannot be imported: No module named"),
            ("encoders_tried:bright", "encoder must be in 'encoders_tried', got 'bright'; near"),
            ("encoders_tried:broken", "encoder 'encoders_tried:broken' fails on these items: can"),
        ],
    )
    def test_a_name_that_does_not_serve_is_told(self, name: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            encode(PIXELS, name, kind="image")

    def test_an_encoder_that_is_open_is_not_loaded_again(self, bert: Path, tmp_path: Path) -> None:
        folder = copy(bert, tmp_path)
        held = opened(f"transformers:{folder}", "text")
        shutil.rmtree(folder)
        np.testing.assert_array_equal(encode(TEXTS, held), encode(TEXTS, f"transformers:{bert}"))

    def test_options_are_checked(self, bert: Path) -> None:
        with pytest.raises(InputError, match="kind must be one of text, image"):
            encode(["a"], flat, kind="sound")
        wrong: tuple[Any, ...] = (0, 2.0, True)
        for size in wrong:
            with pytest.raises(InputError, match="batch_size"):
                encode(["a"], flat, batch_size=size)
        for device in ("nowhere", "cuda:99"):
            with pytest.raises(InputError, match="device must be one that torch can use"):
                encode(["a"], f"transformers:{bert}", device=device)

    def test_libraries_that_are_absent_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingDependencyError, match=r'"howsure\[text\]"'):
            encode(["a"], "transformers:some/model")
        monkeypatch.setitem(sys.modules, "open_clip", None)
        with pytest.raises(MissingDependencyError, match="pip install open_clip_torch"):
            encode(["a"], "open_clip:ViT-B-32/openai")


class TestSafety:
    def test_a_folder_that_does_not_exist_is_not_sought_on_the_hub(
        self, hugging: Any, tmp_path: Path
    ) -> None:
        with pytest.raises(InputError, match="a folder that exists"):
            encode(["a"], f"transformers:{tmp_path / 'none'}")

    def test_pickled_weights_are_never_opened(self, bert: Path, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> Any:
                return (Path.touch, (tmp_path / "sprung",))

        folder = copy(bert, tmp_path)
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
        with pytest.raises(InputError, match="cannot be loaded"):
            encode(["a"], f"transformers:{folder}")
        assert not (tmp_path / "sprung").exists()

    def test_a_models_own_code_is_never_run(self, bert: Path, tmp_path: Path) -> None:
        folder = copy(bert, tmp_path)
        (folder / "own.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
        config = json.loads((folder / "config.json").read_text())
        config["model_type"] = "own"
        config["auto_map"] = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match="cannot be loaded"):
            encode(["a"], f"transformers:{folder}")
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\0" * 99])
    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
    def test_broken_files_are_refused(
        self, bert: Path, tmp_path: Path, name: str, content: bytes
    ) -> None:
        folder = copy(bert, tmp_path)
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match="cannot be loaded"):
            encode(["a"], f"transformers:{folder}")

    def test_a_missing_weight_or_vocabulary_is_refused(self, bert: Path, tmp_path: Path) -> None:
        from safetensors.torch import load_file, save_file

        folder = copy(bert, tmp_path)
        for file in folder.glob("tokenizer*"):
            file.unlink()
        with pytest.raises(InputError, match="the vocabulary is missing"):
            encode(["a"], f"transformers:{folder}")
        weights = load_file(folder / "model.safetensors")
        weights.pop("bert.encoder.layer.0.output.dense.weight")
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(InputError, match=r"has no 'encoder\.layer\.0\.output\.dense\.weight'"):
            encode(["a"], f"transformers:{folder}")

    def test_a_tokenizer_of_another_model_is_refused(
        self, hugging: Any, make: Callable[..., Path]
    ) -> None:
        folder = make(hugging.BertModel(hugging.BertConfig(vocab_size=6, **SMALL)))
        with pytest.raises(InputError, match="fails on these items"):
            encode(["dog"], f"transformers:{folder}")

    def test_nothing_global_changes(self, bert: Path, vision: Path, torch: Any) -> None:
        from transformers.utils import logging

        def state() -> tuple[Any, ...]:
            return (
                torch.get_rng_state().numpy().tobytes(),
                np.random.get_state()[1].tobytes(),  # noqa: NPY002
                torch.get_default_dtype(),
                torch.get_num_threads(),
                torch.is_grad_enabled(),
                logging.get_verbosity(),
                logging.is_progress_bar_enabled(),
            )

        logging.set_verbosity_warning()
        before = state()
        encode(TEXTS, f"transformers:{bert}")
        encode(PIXELS, f"transformers:{vision}")
        assert state() == before

    def test_weights_of_half_precision_are_used_in_full(
        self, bert: Path, torch: Any, tmp_path: Path
    ) -> None:
        from safetensors.torch import load_file, save_file

        vectors = []
        for name, cast in (("half", False), ("full", True)):
            folder = copy(bert, tmp_path / name)
            weights = load_file(folder / "model.safetensors")
            rounded = {key: value.half() for key, value in weights.items()}
            kept = {key: value.float() if cast else value for key, value in rounded.items()}
            save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
            vectors.append(encode(TEXTS, f"transformers:{folder}"))
        np.testing.assert_array_equal(*vectors)


class TestOpenClip:
    def test_a_real_model_from_a_file(self, torch: Any, tmp_path: Path) -> None:
        try:
            import open_clip
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"open_clip does not work here: {error}")
        from safetensors.torch import save_file

        config = {
            "embed_dim": 8,
            "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16},
            "text_cfg": {"context_length": 10, "width": 64, "heads": 2, "layers": 2},
        }
        (tmp_path / "tiny-test.json").write_text(json.dumps(config))
        open_clip.add_model_config(tmp_path / "tiny-test.json")
        model = open_clip.create_model("tiny-test").eval()
        save_file(model.state_dict(), tmp_path / "w.safetensors")
        name = f"open_clip:tiny-test/{tmp_path / 'w.safetensors'}"
        with torch.no_grad():
            want = model.encode_text(open_clip.get_tokenizer("tiny-test")(TEXTS)).numpy()
        np.testing.assert_allclose(encode(TEXTS, name), want, atol=2e-6)
        assert encode(PIXELS, name, batch_size=2).shape == (5, 8)

    def test_weights_must_be_named_and_safe(
        self, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        library = types.SimpleNamespace(  # no loader: an attempt to load would be another error
            list_pretrained_tags_by_model=lambda name: ["openai"],
            get_pretrained_cfg=lambda name, tag: {"url": "…"} if tag == "openai" else {},
            download_pretrained=lambda known: "weights.bin",
        )
        monkeypatch.setitem(sys.modules, "open_clip", library)
        (tmp_path / "w.pt").touch()
        for name in ("openai", tmp_path / "w.pt"):
            with pytest.raises(InputError, match="weights in a safetensors file"):
                encode(["a"], f"open_clip:ViT-B-32/{name}")
        for name in ("ViT-B-32", "ViT-B-32/none", "ViT-B-32/none.safetensors"):
            with pytest.raises(InputError, match=r"must name weights.*'openai'"):
                encode(["a"], f"open_clip:{name}")
        with pytest.raises(InputError, match="must contain weights"):
            encode(["a"], f"open_clip:local-dir:{tmp_path}")


class TestOwnEncoders:
    def test_a_callable_gets_items_in_order_and_progress_is_told(self) -> None:
        seen: list[list[str]] = []
        steps: list[tuple[str, int, int]] = []

        def lengths(batch: list[str]) -> list[list[int]]:
            seen.append(batch)
            return [[len(text)] for text in batch]

        with subscribe(lambda *step: steps.append(step)):
            got = encode(TEXTS, lengths, batch_size=2)
        assert seen == [TEXTS[:2], TEXTS[2:4], TEXTS[4:]]
        assert got.ravel().tolist() == [len(text) for text in TEXTS]
        assert steps == [("embeddings of items", done, 3) for done in range(4)]

    @pytest.mark.parametrize(
        ("encoder", "message"),
        [
            (lambda batch: np.zeros(len(batch)), "one vector for each of 2 items, got shape"),
            (lambda batch: np.zeros((1, 3)), r"one vector for each of 2 items, got shape \(1, 3"),
            (lambda batch: np.zeros((len(batch), 0)), "one vector for each"),
            (lambda batch: [["a"]] * len(batch), "real numbers"),
            (lambda batch: np.zeros((len(batch), len(batch[0]))), "equal width, got 7 and 15"),
            (lambda batch: [[np.nan if "b" in text else 1.0] for text in batch], "2 of 5 are not"),
            (lambda batch: [[1e300 if text == "dog" else 1.0] for text in batch], "row 3"),
        ],
    )
    def test_wrong_vectors_are_refused(self, encoder: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            encode(TEXTS, encoder, batch_size=2)

    def test_an_error_of_the_callers_is_the_callers(self) -> None:
        with pytest.raises(KeyError):
            encode(TEXTS, lambda batch: [{"a": [1.0]}[text] for text in batch])

    def test_scikit_learn_transformers_serve(self) -> None:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.preprocessing import StandardScaler

        words = CountVectorizer(token_pattern=r"\w+").fit(TEXTS)
        for kind in (None, "text"):
            got = encode(TEXTS, words, kind=kind)
            np.testing.assert_array_equal(got, words.transform(TEXTS).toarray())
        with pytest.raises(InputError, match="must be fitted"):
            encode(np.zeros((3, 2)), StandardScaler())
        with pytest.raises(InputError, match="kind must be 'text' or None"):
            encode(PIXELS, words, kind="image")
        with pytest.raises(InputError, match="must not be empty"):
            encode(np.zeros((0, 2)), StandardScaler().fit(np.zeros((3, 2))))


TABLE: dict[str, Any] = {
    "size": np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
    "open": np.array([True, False, True, True, False, True]),
    "site": ["a", "b", "a", "a", "b", "a"],
    "day": np.arange("2020-01-01", "2020-01-07", dtype="datetime64[D]"),
}


class TestTabular:
    @given(
        numbers=st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=30),
        data=st.data(),
        scale=st.floats(0.01, 100.0),
    )
    @examples(60)
    def test_every_column_counts_alike_in_any_units(
        self, numbers: list[float], data: Any, scale: float
    ) -> None:
        size = len(numbers)
        labels = data.draw(st.lists(st.sampled_from("abcd"), min_size=size, max_size=size))
        rounded = np.round(numbers, 2)
        table: dict[str, Any] = {"number": rounded, "label": labels, "row": np.arange(size)}
        encoder = tabular_encoder(table)
        got = encoder.transform(table)
        assert got.var(axis=0).sum() == pytest.approx(len(encoder.columns), rel=1e-9)
        other = {**table, "number": 3.0 + scale * rounded}
        np.testing.assert_allclose(
            tabular_encoder(other).transform(other), got, rtol=1e-5, atol=1e-6
        )

    def test_two_labels_are_a_truth_value(self) -> None:
        distances = []
        for name in ("open", "site"):
            got = tabular_encoder({name: TABLE[name]}).transform({name: TABLE[name]})
            distances.append(((got[:, None] - got[None]) ** 2).sum(axis=2))
        np.testing.assert_allclose(*distances, atol=1e-12)
        assert distances[0].max() == pytest.approx(1.0 / (4 / 6 * 2 / 6))

    def test_numbers_are_centred_and_scaled(self) -> None:
        got = tabular_encoder(TABLE).transform(TABLE)
        size = TABLE["size"]
        np.testing.assert_allclose(got[:, 0], (size - size.mean()) / size.std())
        days = np.arange(6.0)
        np.testing.assert_allclose(got[:, -1], (days - 2.5) / days.std(), rtol=1e-9)

    def test_rare_and_unseen_labels_are_one(self) -> None:
        labels = ["a"] * 50 + ["b"] * 48 + ["c", "d"]
        encoder = tabular_encoder({"label": labels})
        assert encoder.width == 3
        got = encoder.transform({"label": ["c", "d", "never", "a", "b"]})
        np.testing.assert_array_equal(got[0], got[1])
        np.testing.assert_array_equal(got[0], got[2])
        assert len(np.unique(got, axis=0)) == 3
        many = [f"label {row % 60}" for row in range(600)]
        assert tabular_encoder({"label": many}).width == 20
        few = [f"label {row % 10}" for row in range(600)]
        assert tabular_encoder({"label": few}).width == 10
        assert tabular_encoder({"label": [*few, *"xxx", *"yyy"]}).width == 11
        assert tabular_encoder({"label": [*few, *"xxxxxxx", *"yyyyyyy"]}).width == 12

    def test_columns_that_say_nothing_are_dropped(self) -> None:
        names = [f"row {row}" for row in range(6)]
        table = {**TABLE, "unit": ["m"] * 6, "one": np.ones(6), "name": names}
        encoder = tabular_encoder(table)
        assert encoder.columns == tuple(TABLE)
        assert encoder.dropped == ("unit", "one", "name")
        np.testing.assert_array_equal(encoder.transform(TABLE), encoder.transform(table))

    def test_dates_are_read_in_their_units_and_objects_by_their_content(self) -> None:
        encoder = tabular_encoder(TABLE)
        want = encoder.transform(TABLE)
        other = {**TABLE, "day": TABLE["day"].astype("datetime64[ns]")}
        other["size"] = TABLE["size"].astype(object)
        np.testing.assert_allclose(encoder.transform(other), want, rtol=1e-12)

    def test_it_is_an_encoder_of_encode(self) -> None:
        encoder = tabular_encoder(TABLE)
        got = encode(TABLE, encoder)
        np.testing.assert_array_equal(got, encoder.transform(TABLE).astype(np.float32))

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ({}, "must be a mapping with at least one column"),
            ([1.0], "must be a mapping"),
            ({"a": []}, "feature 'a' must have at least one row"),
            ({"a": [1.0, 2.0], "b": [1.0]}, "feature 'b' must have 2 rows"),
            ({"a": [1.0, np.nan]}, "feature 'a'"),
            ({"a": [1.0, np.inf]}, "feature 'a' must contain finite numbers"),
            ({"a": ["x", None]}, "feature 'a' must contain no missing labels"),
            ({"a": ["x", "x"], "b": [1.0, 1.0]}, "must have a column that varies"),
            ({"a": [1.0]}, "must have a column that varies"),
        ],
    )
    def test_tables_that_cannot_be_encoded_are_refused(self, table: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            tabular_encoder(table)

    @pytest.mark.parametrize("size", [1.7e308, 1e60, 1e-200, 5e-324])
    def test_numbers_of_any_size_are_scaled(self, size: float) -> None:
        table = {"a": [0.0, size, size]}
        expected = tabular_encoder({"a": [0.0, 1.0, 1.0]}).transform({"a": [0.0, 1.0, 1.0]})
        np.testing.assert_allclose(tabular_encoder(table).transform(table), expected)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"size": ["x"] * 6}, "feature 'size' must contain numbers, as before"),
            ({"site": [1.0] * 6}, "feature 'site' must contain labels, as before"),
            ({"day": np.arange(6)}, "feature 'day' must contain dates, as before"),
            ({"size": TABLE["day"]}, "feature 'size' must contain numbers"),
            ({"site": ["a"]}, "feature 'site' must have 6 rows"),
            ({"size": [1e300] * 6}, "too far out"),
            ({"size": [np.nan] * 6}, "feature 'size'"),
        ],
    )
    def test_other_tables_are_refused(self, change: dict[str, Any], message: str) -> None:
        encoder = tabular_encoder(TABLE)
        with pytest.raises(InputError, match=message):
            encoder.transform({**TABLE, **change})
        with pytest.raises(InputError, match="has no columns 'size'"):
            encoder.transform({"open": TABLE["open"]})
