#!/usr/bin/env python3
"""Makes tests/nn/fixtures/nf4.json: what bitsandbytes makes of a few numbers by nf4 with double quantisation.

usage: make_nf4_fixture.py OUTPUT.json      (needs torch and bitsandbytes; made with 0.50.2 on a CPU)
"""
import json
import sys

import bitsandbytes.functional as bnb
import torch


def case(values):
    packed, state = bnb.quantize_4bit(values, blocksize=64, compress_statistics=True, quant_type="nf4")
    return {"values": values.flatten().tolist(), "dequantized": bnb.dequantize_4bit(packed, state).flatten().tolist()}


torch.manual_seed(3)
cases = [case(torch.randn(4, 64)), case(0.02 * torch.randn(3, 50)), case(torch.randn(16, 24) * torch.rand(16, 1))]
with open(sys.argv[1], "w") as out:
    json.dump({"dynamic_map": bnb.create_dynamic_map(signed=True).tolist(),
               "code_book": bnb.get_4bit_type("nf4", device="cpu").tolist(), "cases": cases}, out)
    out.write("\n")
