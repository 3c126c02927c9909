"""config.json of a TEN model."""
from transformers import PretrainedConfig


class TenConfig(PretrainedConfig):
    """
    num_eigenstates: complex numbers of a layer's state.
    num_heads: blocks of the matrix that mixes them.
    init: "lru" or "compat": what the trained numbers of a decay mean, and where training starts.
    min_modulus, max_modulus, max_angle: of decays where training starts, under lru.
    selective: decays follow the input, too.
    conv_kernel: taps of the causal convolution before the recurrence; 0: none.
    depth_decay: under compat, upper layers start with longer memories.
    layer_memory: a layer reads the states of the layer below.
    windows: lengths of the windows of the multi-scale block; empty: no such block.
    scan_chunk, dynamics_rate: of the program that trains, kept for it.
    max_position_embeddings: the length that was trained, no limit.
    """

    model_type = "ten"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, vocab_size=50257, hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_eigenstates=64,
                 num_heads=4, init="lru", min_modulus=0.9, max_modulus=0.999, max_angle=6.283185307179586, selective=False,
                 conv_kernel=4, depth_decay=True, layer_memory=True, windows=None, scan_chunk=256, dynamics_rate=0.1,
                 layer_norm_eps=1e-5, max_position_embeddings=512, initializer_range=0.02, use_cache=True,
                 pad_token_id=None, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True, **kwargs):
        windows = windows or []
        if init not in ("lru", "compat"):
            raise ValueError(f"init is '{init}': 'lru' and 'compat' are known")
        if num_eigenstates % num_heads != 0:
            raise ValueError(f"num_eigenstates {num_eigenstates} is no multiple of num_heads {num_heads}")
        if windows and num_eigenstates % len(windows) != 0:
            raise ValueError(f"num_eigenstates {num_eigenstates} is no multiple of the number of windows {len(windows)}")
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_eigenstates = num_eigenstates
        self.num_heads = num_heads
        self.init = init
        self.min_modulus = min_modulus
        self.max_modulus = max_modulus
        self.max_angle = max_angle
        self.selective = selective
        self.conv_kernel = conv_kernel
        self.depth_decay = depth_decay
        self.layer_memory = layer_memory
        self.windows = windows
        self.scan_chunk = scan_chunk
        self.dynamics_rate = dynamics_rate
        self.layer_norm_eps = layer_norm_eps
        self.max_position_embeddings = max_position_embeddings
        self.initializer_range = initializer_range
        self.use_cache = use_cache
        # Of the base class in some releases of transformers, in others not.
        self.pad_token_id = pad_token_id
        self.bos_token_id = bos_token_id
        self.eos_token_id = eos_token_id
        self.tie_word_embeddings = tie_word_embeddings
        super().__init__(pad_token_id=pad_token_id, bos_token_id=bos_token_id, eos_token_id=eos_token_id,
                         tie_word_embeddings=tie_word_embeddings, **kwargs)
