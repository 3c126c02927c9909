"""One training step of the Llama of a config.json in plain PyTorch, for startup.py: prints when it was taken, in Unix seconds.

usage: startup_peer.py CONFIG.json OUT.pt
"""
import json
import sys
import time

import torch
from torch_models import Llama

torch.set_num_threads(1)
with open(sys.argv[1]) as file:
    config = json.load(file)
model = Llama(config)
ids_bt = torch.randint(config["vocab_size"], (1, 129))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss = torch.nn.functional.cross_entropy(model(ids_bt[:, :-1]).flatten(0, 1), ids_bt[:, 1:].flatten())
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
print(time.time())
torch.save(model.state_dict(), sys.argv[2])
