"""A pooling module for sentence-transformers: a mean whose weights rise by 1 from the first token behind the prompt.

The library's own weightedmean counts from the first token of all, prompt or not.
"""
import json
import os

import torch


class WeightedMeanBehindPrompt(torch.nn.Module):
    def __init__(self, word_embedding_dimension):
        super().__init__()
        self.word_embedding_dimension = word_embedding_dimension

    def forward(self, features):
        hidden = features["token_embeddings"]
        mask = features["attention_mask"].float()
        prompt_length = features.get("prompt_length", 0)
        if torch.is_tensor(prompt_length):
            prompt_length = int(prompt_length.flatten()[0])
        # The number of a token among those of its text, whichever side the padding is on.
        weights = mask * (mask.cumsum(dim=1) - prompt_length).clamp(min=0)
        total = weights.sum(dim=1, keepdim=True).clamp(min=1)
        pooled = (hidden.float() * weights.unsqueeze(-1)).sum(dim=1) / total
        features["sentence_embedding"] = pooled.to(hidden.dtype)
        return features

    def get_sentence_embedding_dimension(self):
        return self.word_embedding_dimension

    def get_config_dict(self):
        return {"word_embedding_dimension": self.word_embedding_dimension}

    def save(self, output_path, *args, **kwargs):
        with open(os.path.join(output_path, "config.json"), "w") as file:
            json.dump(self.get_config_dict(), file, indent=2)

    @classmethod
    def load(cls, path, subfolder="", **kwargs):
        with open(os.path.join(path, subfolder, "config.json")) as file:
            return cls(**json.load(file))
