"""A cross-encoder small enough to check by hand: its files, as bytes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d")
WORTH = dict(zip(WORDS, (1000.0, 0.0, 0.1, 0.2, 1.0, -2.0, 0.5, 4.0), strict=True))


def pair_model(classes: int = 1, *, types: bool = True) -> bytes:
    """Return an ONNX file whose logit is the worth of all tokens, those of the text tenfold.

    With two classes the first's is a constant of three.
    """
    ids = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    worth = np.array(list(WORTH.values()), np.float32)
    constants = {"worth": worth, "nine": np.array(9, np.float32), "ones": np.array([1], np.int64)}
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["each", "mask"], ["real"]),
    ]
    last = "real"
    if types:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["side"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["side", "nine"], ["nines"]),
            helper.make_node("Mul", ["nines", "real"], ["more"]),
            helper.make_node("Add", ["real", "more"], ["weighed"]),
        ]
        last = "weighed"
    summed = "logits" if classes == 1 else "second"
    nodes.append(helper.make_node("ReduceSum", [last, "ones"], [summed], keepdims=1))
    if classes > 1:
        constants |= {"nought": np.array(0, np.float32), "three": np.array(3, np.float32)}
        nodes += [
            helper.make_node("Mul", ["second", "nought"], ["zeros"]),
            helper.make_node("Add", ["zeros", "three"], ["first"]),
            helper.make_node("Concat", ["first"] * (classes - 1) + ["second"], ["logits"], axis=1),
        ]
    graph = helper.make_graph(
        nodes,
        "pairs",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "m"]) for name in ids],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", classes])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def pair_tokenizer() -> bytes:
    """Return a tokenizer of pairs that, as stored, would cut at 4 tokens and pad to 9."""
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    return tokenizer.to_str().encode()
