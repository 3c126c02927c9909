"""The bodies of decoder-only models with bidirectional attention: every token attends to all of its text.

AutoModel takes a class from here where config.json names it and trust_remote_code is on; AutoModelForCausalLM stays
transformers' own, so that the same folder generates with causal attention. Written for transformers from 4.53 on, whose
models take a mask of four dimensions as it is.
"""
import torch
from transformers import GPT2Model, GPTNeoXModel, LlamaModel, MistralModel, Qwen2Model


def bidirectional_mask(padding_mask, length, window, dtype, device):
    """What is added to the attention scores [B, 1, T, T]: 0 where a token sees another one, else the least number.

    padding_mask: [B, T], 1 for tokens, 0 for padding; None: all are tokens.
    window: a token sees those up to `window` places away, as transformers 5 has it of is_causal false; None: all.
    """
    seen = torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
    if window is not None:
        places = torch.arange(length, device=device)
        seen = seen & ((places[:, None] - places[None, :]).abs() <= window)
    if padding_mask is not None:
        # Padding sees itself too, so that no row of the softmax is empty; nothing reads it.
        itself = torch.eye(length, dtype=torch.bool, device=device)
        seen = (seen & padding_mask[:, None, None, :].to(device=device, dtype=torch.bool)) | itself
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill(~seen, torch.finfo(dtype).min)


class Bidirectional:
    """Hands the family's model a whole mask, which it takes as it is."""

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **kwargs):
        if self.config._attn_implementation not in ("sdpa", "eager"):  # others take no whole mask
            raise ValueError("bidirectional attention needs attn_implementation='sdpa' or 'eager'")
        if kwargs.get("past_key_values") is not None:
            raise ValueError("bidirectional attention has no cache: every token sees those that follow")
        inputs = input_ids if input_ids is not None else inputs_embeds
        length, device = inputs.shape[1], inputs.device

        def mask(window):
            return bidirectional_mask(attention_mask, length, window, self.dtype, device)

        window = getattr(self.config, "sliding_window", None)
        kinds = set(getattr(self.config, "layer_types", None) or [])
        if isinstance(self, Qwen2Model):  # has a mask for each kind of layer
            whole = {"full_attention": mask(None)}
            if "sliding_attention" in kinds:
                whole["sliding_attention"] = mask(window)
        else:
            whole = mask(window if isinstance(self, MistralModel) else None)
        kwargs["use_cache"] = False
        return super().forward(input_ids=input_ids, attention_mask=whole, inputs_embeds=inputs_embeds, **kwargs)


class BidirectionalLlamaModel(Bidirectional, LlamaModel):
    pass


class BidirectionalMistralModel(Bidirectional, MistralModel):
    pass


class BidirectionalQwen2Model(Bidirectional, Qwen2Model):
    pass


class BidirectionalGPT2Model(Bidirectional, GPT2Model):
    pass


class BidirectionalGPTNeoXModel(Bidirectional, GPTNeoXModel):
    pass
