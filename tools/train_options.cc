#include "tools/train_options.h"

#include "lib/spec/built_in_families.h"
#include "tools/compute_options.h"
#include "tools/train_presets.h"

namespace trainwright {

const ToolInfo& TrainInfo() {
  static const ToolInfo info = {
      .name = "train",
      .summary = "train a language model on packed shards",
      .description =
          "Trains a model of the Llama, Mistral, Qwen2, GPT-2 or GPT-NeoX family on shards made by pack(1), "
          "from "
          "scratch or from given weights (--init), and writes a run directory with checkpoints that Hugging "
          "Face transformers opens. Without options it reads "
          "shards/, chooses a model for the "
          "device, trains for one epoch but at least 100 optimizer steps, and writes runs/<model>-001. What "
          "it chose, "
          "and why, is printed; so are tokens and seconds per step after the second step.\n\n"
          "An optimizer step takes --batch times --accum samples. A sample is at most --seq tokens, cut from "
          "a chunk at "
          "its stored document boundaries: attention never crosses a document, positions start at 0 in each, "
          "and no "
          "padding is computed. The loss is the mean over all labels of the step, so --accum 8 --batch 1 and "
          "--accum 1 "
          "--batch 8 are the same step up to rounding. The order of samples depends on the data, --seed and "
          "--seq "
          "alone.",
      .sections =
          {{"RESUMING",
            "--resume continues the newest run in runs/, or the one that --out names, from its "
            "newest checkpoint that "
            "verifies; a run without a checkpoint starts again. The result is bit for bit that of a "
            "run that was never "
            "stopped, on the same device kind, instruction set, thread count, torch build and "
            "micro-batch; where one of "
            "these differs a warning says so.\n\n"
            "The plan (length, schedule, step size, precision, seed) is the checkpoint's. A flag "
            "that asks for "
            "something else is refused; --batch and --accum may split the same step otherwise, and "
            "--threads, "
            "--save-every, --eval-every, --log-every, --cost-per-hour, --async-save, --keep, --keep-best, "
            "--save-model-only, "
            "--compress-state, --compress-model, --copy-*, --delete-after-copy, --max-minutes, --watchdog, "
            "--checkpoint-activations, "
            "--offload, --offload-dir, --auto-oom, --mem-fraction "
            "are free. Other data is "
            "refused unless "
            "--allow-data-change is given."},
           {"ADAPTERS",
            "With --lora R the weights of the model stay as they are; beside each chosen matrix W a "
            "pair of matrices is trained: y = x W^T + (alpha / R) B A dropout(x) (LoRA, "
            "arXiv:2106.09685). Gradients and moments exist for A and B alone, the frozen weights are "
            "kept in the type of the products without a master, and the backward pass ends at the "
            "lowest adapter. --quant nf4 keeps the frozen matrices of the layers in 4.13 bits an "
            "element (QLoRA, arXiv:2305.14314) and reads them through one scratch matrix. Base weights "
            "come from --init; without it they are random and are saved in the run as base/.\n\n"
            "Checkpoints then hold adapter_config.json and adapter_model.safetensors as peft opens "
            "them; evaluate(1) and generate(1) take such a checkpoint or the run directory. Adapters "
            "of peft are read (--adapter), rank-stabilised ones too; what else changes the maths (DoRA, "
            "biases, ranks by module) is refused by name. A resumed run refuses a base with other "
            "weights. Dropout is a function of the seed, the step and the token, so a resumed run "
            "drops the same."},
           {"PRESETS",
            "A preset gives the options that nobody else gives: flags, environment and --config go before "
            "it, also where an option excludes one of the preset's (--steps takes the place of its "
            "--epochs). train --preset NAME --print-config shows its values. What this build has no "
            "option for is left out and told. Data, and in most the model, are yours to name.\n\n" +
                DescribePresets(TrainPresets())},
           {"FILES OF THE LORA TRAINER",
            "--config also takes a YAML file with the sections api_models, dataset, lora and inference. The "
            "keys of lora become options: lora_r --lora, lora_alpha --lora-alpha, lora_dropout "
            "--lora-dropout, target_modules --lora-targets, use_4bit --quant nf4, model_id --init, "
            "num_epochs "
            "--epochs, batch_size --batch, gradient_accumulation_steps --accum, learning_rate --lr, "
            "max_seq_length --seq, logging_steps --log-every, eval_steps --eval-every, save_steps "
            "--save-every, save_total_limit --keep, lr_scheduler_type --schedule, warmup_ratio "
            "--warmup-ratio, max_grad_norm --clip, output_dir --out. Where the file says nothing that "
            "trainer's own defaults hold, behind --preset. What has no effect here is told, an unknown key "
            "is "
            "an error."},
           {"SCHEDULES",
            "All are functions of the step alone; S is --steps, w is --warmup, r is --min-lr-ratio. "
            "All but one-cycle rise evenly to --lr over the first w steps. Then constant stays "
            "there, linear and cosine fall to r times --lr at the last step, and wsd (warm-up, "
            "stable, decay) stays there until the last D steps, --decay-steps, and falls as "
            "1 - sqrt(u), with u from 0 to 1 over them: the shape and the fifth of the run that "
            "arXiv:2405.18392 "
            "found best. one-cycle is PyTorch's OneCycleLR: from --lr / 25 along half a cosine to "
            "--lr at step w, a tenth of the run, and along another to --lr / 250,000."},
           {"LOSS",
            "loss_nats in metrics.jsonl, on the console and in the summary is always the "
            "cross-entropy alone, so that runs compare. What --label-smoothing and --z-loss add to "
            "it in the objective is in smoothing_nats and z_loss_nats of the step records. "
            "Evaluation has neither. Both are off by default and then change no bit; 1e-4 is the "
            "z-loss of PaLM (arXiv:2204.02311).\n\n"
            "Of conversations (sft records) the loss is the mean over the predicted tokens of a step: the "
            "answers and the marks that end them. The first token of an answer is predicted from the last of "
            "its prompt; attention sees the whole conversation and nothing else. A sample without such a "
            "token (a piece of a long prompt) is left out. tokens in metrics count all that are read, labels "
            "those that are predicted. Evaluation follows the same choice."},
           {"LOADER",
            "--workers threads decode shards and cut samples ahead of the training thread, a window "
            "of 64 chunks at a time, and live as long as the run; together they keep --workers times "
            "--prefetch windows ready. The order of samples does not depend on either. The time that "
            "training waited for data is data_wait_s in the step records: raise --workers or "
            "--prefetch when it grows, lower them when memory is short. Samples run on from one "
            "epoch into the next, in the middle of a step too, unless --drop-last is given.\n\n"
            "The order is that of trainwright-sample-order(5). Where chunks are shorter than a frame of the "
            "shards "
            "(32,768 tokens), a frame is decoded for every chunk of it unless it is among those that "
            "--data-cache "
            "keeps; with much more data than that, --shuffle-block (the chunks of a frame: 32,768 over "
            "pack's "
            "--chunk) reads each frame once, at the price that those chunks stay within a window of 64 "
            "blocks.\n\n"
            "A chunk that cannot be read stops the run with status 3, naming shard, frame and byte. With "
            "--skip-bad-chunks N, up to N such chunks are left out, each with a warning; which chunk takes "
            "the place "
            "is part of the order, so a resumed run reads the same samples. The chunks that were left out "
            "are in the "
            "checkpoint and count after a resumption too."},
           {"MIXING",
            "Several --data are drawn from in turn, a chunk at a time, so that each has its share at every "
            "moment, "
            "exact to a few chunks. They need the same tokenizer, kind of records and chunk length. An epoch "
            "is as "
            "many chunks as all sets hold together: with --data-weights a set may come more often than once "
            "in it, or "
            "less, each of its passes in an order of its own. data_sources in metrics.jsonl tells the "
            "shares, "
            "source_tokens the tokens of each set in a step."},
           {"HOLDING OUT",
            "--eval-split divides the documents of --data by their own content: a document is held out when "
            "XXH3-64 "
            "of its ids as little-endian 32-bit numbers, seeded from --eval-split-seed, is below a bound. So "
            "neither "
            "the order of the data nor how it is packed nor --seed changes the side of a document, data that "
            "is added "
            "moves none from one side to the other, and copies of a document lie on one side. Of a share p "
            "the bound "
            "is p times 2^64, so about that share is held out, not exactly. Of a number of documents it is "
            "what lets "
            "so many of this data pass (more where copies tie); a run that is resumed keeps it. Documents "
            "that pack "
            "cut are divided as they lie in the chunks, each part by itself: pack with a --chunk as long as "
            "the "
            "documents where no part of one may help to predict another. The label behind a cut is left "
            "out.\n\n"
            "evaluate --eval-split measures another model on the same documents."},
           {"BEFORE TRAINING",
            "--explain prints a table on standard output of every option: its value, its origin "
            "(default, auto, preset, config, environment, command line, or the checkpoint that is resumed), "
            "and the reason of what was chosen for you.\n\n"
            "--dry-run makes the model and the optimizer, reads the first steps' samples, runs the "
            "largest micro-batch among them, and prints on standard output where memory goes, how "
            "many steps and tokens there will be, how long they take at the measured speed, and how "
            "much disk the kept checkpoints need. Where the weights do not fit into memory it says "
            "so without making or running anything; where the micro-batch does not, it scales a "
            "single sample. A run that does not fit is exit status 1, and the largest part of its "
            "memory is named with the flags that make it smaller. On a GPU it takes the sizes of "
            "all that will lie there from the shapes of its tensors first, attention's scratch by "
            "formula, and runs the micro-batch only where they fit into what the GPU has free; what "
            "cuBLAS and the allocator take besides is known after that run alone. Both create no "
            "run directory, and both put the same as JSON into --summary."},
           {"MEMORY",
            "--optimizer-states bf16 keeps AdamW's two moments in 2 bytes an element each instead of 4. They "
            "are "
            "rounded stochastically, up with the probability that is the share of the way, so that what is "
            "stored is "
            "the exact moment on average and small changes are not lost; the step itself is computed in fp32 "
            "from "
            "the moments before they are rounded. The random bits are a function of seed, update and "
            "element, so a "
            "resumed run is the same run, and they do not depend on threads. It is part of the run's plan: "
            "--resume "
            "goes on with what the run has and refuses the other.\n\n"
            "--checkpoint-activations trades time for memory and changes no bit of the result: what was not "
            "kept is computed again by the same kernels, so a run may be resumed with another setting. "
            "selective drops the widest of what a layer keeps, the inside of its MLP, for one or two "
            "products "
            "more; full keeps the layers' inputs alone and repeats the forward pass of all layers but the "
            "last. "
            "--dry-run tells what each takes.\n\n"
            "--offload activations puts what each layer but the last keeps away after its forward pass and "
            "brings it "
            "back before its backward pass, so that the memory of one layer serves all; with "
            "--checkpoint-activations "
            "full that is the layers' inputs. It changes no bit of the result. On a GPU it goes to pinned "
            "host memory "
            "by copies in the order of the computation. On a CPU it goes to a file without a name in "
            "--offload-dir: "
            "the process is smaller by it, and the system keeps the file in its page cache as long as nobody "
            "else "
            "wants that memory, so a disk is waited for only then. What went out and in and the time it took "
            "is told "
            "at the end and in metrics.jsonl (offload). A folder in memory (tmpfs) gains nothing and is "
            "warned of.\n\n"
            "--offload gradients does the same for the gradients: in memory are those of one layer, of the "
            "embeddings, or of the head at a time, and the memory of the largest of these serves all. Norm "
            "and "
            "optimizer read them layer after layer. On a CPU it changes no bit of the result, on a GPU only "
            "the "
            "rounding of the norm. It gains most where layers are many and the vocabulary is small beside "
            "them, and "
            "nothing with --lora, whose adapters are one part. Each micro-batch takes all gradients out and "
            "in once "
            "and each step in twice more, so it costs least with large micro-batches.\n\n"
            "--auto-oom takes a step that ran out of memory again, from the same samples, in micro-batches "
            "at "
            "most half as large; evaluations too. The result is that of a run that was started with that "
            "--batch "
            "and --accum, and a warning record says when. It does not help where the weights themselves do "
            "not "
            "fit.\n\n"
            "--mem-fraction on a CPU is the system's limit on the process's private writable memory "
            "(RLIMIT_DATA): it counts what is allocated, touched or not, and no mapped files. Tensors meet "
            "it "
            "32 MiB early (an eighth of a cap below 256 MiB), and fail with the message: libraries need that "
            "room, "
            "as not all of them survive an allocation that fails. A limit of the shell (ulimit -d, ulimit "
            "-v) is "
            "treated the same."},
           {"UTILISATION",
            "model_flops_per_s in the step records is what the model's mathematics ask for, per "
            "second of the step: matrix products and attention, two operations a multiply-add, "
            "forward and backward, for the tokens there are (trainwright-metrics(5) has the "
            "formula). mfu, model FLOPs utilisation (arXiv:2204.02311, appendix B), is that over "
            "the device's peak rate: --peak-tflops, or else the rate without sparsity that NVIDIA "
            "publishes for A100, H100 (SXM, PCIe), H200, L4, L40S, GeForce RTX 3090 and 4090 at "
            "the precision of the run. Where neither is there, on a CPU for instance, mfu is null. "
            "It differs between precisions and so compares runs of one precision."},
           {"CHECKPOINTS",
            "A save copies weights and moments, and a thread of its own writes the copy while training goes "
            "on; the files are those of --async-save off, bit for bit. One save is under way at a time: the "
            "next one waits for it, which is wait_s in the checkpoint records. stall_s there is all that the "
            "training thread lost, writer_cpu_s what the writing took of a processor; on a CPU the writer "
            "shares the cores with training and gives way (nice 10). The copy takes three times the weights' "
            "fp32 size of host memory. A save that fails ends the run with status 4 at the next step. The "
            "last save of a run is waited for."},
           {"COPIES",
            "--copy-to and --copy-command copy each checkpoint after it is committed, one at a time and "
            "beside "
            "training. A copy in a folder is written under a hidden name, synced, read back and compared "
            "with "
            "the sha256 of metadata.json, and then renamed; one of another run is not replaced. What fails "
            "is "
            "tried --copy-retries times more, after 1, 2, 4, ... seconds, and is then a warning; a slow or "
            "failing target never holds up training, and a checkpoint that waits for its copy is not deleted "
            "by --keep. At the end, at SIGINT and SIGTERM too, train waits for the copies and tries once "
            "more "
            "what is missing. When a checkpoint that this process saved still has no copy, the exit status "
            "is 4 "
            "(130 or 143 after a signal) though the run itself is whole. The copy records of metrics.jsonl "
            "tell how each went.\n\n"
            "--resume with --copy-to looks there, too: a copy of a later step than the run's newest whole "
            "checkpoint is "
            "brought back into the run, plain or compressed, compared with the sha256 of its metadata.json, "
            "and "
            "continued from; the run directory may be gone altogether. Where no checkpoint is left and "
            "metrics.jsonl "
            "tells of copies, --resume without --copy-to says where the newest is, and does not begin anew."},
           {"SIGNALS",
            "SIGINT and SIGTERM finish the step, save, wait for the save, and exit with 130 or 143; a "
            "SIGINT after that stops at once, and leaves the checkpoints that were whole. SIGPIPE "
            "is ignored. A process that is killed leaves its last checkpoint whole."},
           {"FILES",
            "  runs/NAME/config.yaml                  the choices, for --config\n"
            "  runs/NAME/metrics.jsonl                trainwright-metrics(5)\n"
            "  runs/NAME/report.svg                   the metrics as curves: written with each checkpoint "
            "and "
            "at the end\n"
            "  runs/NAME/report.html                  the same, the run's facts and its warnings on one "
            "page\n"
            "  runs/NAME/training_metrics.json        loss, learning_rate, epoch, step, eval_loss, "
            "eval_steps as arrays\n"
            "  runs/NAME/tb/                          event files: tensorboard --logdir runs\n"
            "  runs/NAME/checkpoints/step-NNNNNNNN/   trainwright-checkpoint(5)\n"
            "  runs/NAME/latest                       link to the newest checkpoint\n"
            "  runs/NAME/best                         with --keep-best, link to the best one"}},
      .examples = {{"pretokenize tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --steps 2 "
                    "--batch 1 --seq 64",
                    "Two short steps on Shakespeare, byte by byte, into runs/llama-1m-001."},
                   {"pretokenize tinyshakespeare.txt | pack --chunk 1024 | train --data - --steps 2 --batch "
                    "1 --seq 64 --out "
                    "runs/piped",
                    "The same from a pipe, without shards on disk."}},
      .see_also = {"pretokenize(1)", "pack(1)", "evaluate(1)", "generate(1)", "trainwright-checkpoint(5)",
                   "trainwright-sample-order(5)", "trainwright-metrics(5)"},
      .filter = false,
      .stdout_is_data = false,
      .presets = TrainPresets(),
      .exclusive = {{"eval-data", "eval-split"},
                    {"steps", "epochs", "tokens"},
                    {"model", "init"},
                    {"warmup", "warmup-ratio"},
                    {"lora", "adapter"},
                    {"lora-alpha", "adapter"},
                    {"lora-targets", "adapter"}},
      .foreign_config = &LoraTrainerConfig(),
  };
  return info;
}

void DefineTrainOptions(CLI::App& app, TrainSettings* settings) {
  const auto folder = [](CLI::Option* option) { option->type_name("DIR"); };

  AddPresetOptions(app, TrainPresets(), &settings->preset, "Input and output");
  app.add_option("--data", settings->data,
                 "shards to train on: a folder, a file, or - for standard input (default: shards). Given "
                 "several times, "
                 "the sets are mixed")
      ->type_name("FILE")
      ->group("Input and output");
  app.add_option(
         "--data-weights", settings->data_weights,
         "shares of the sets of --data, in their order: 0.7,0.3 (default: by their sizes, so that each chunk "
         "comes once an epoch)")
      ->type_name("W,W,...")
      ->group("Input and output");
  folder(
      app.add_option("--out", settings->out,
                     "run directory (default: the first free runs/MODEL-NNN; with --resume the newest run)")
          ->group("Input and output"));
  app.add_flag("--resume", settings->resume, "continue a run from its newest whole checkpoint")
      ->group("Input and output");
  app.add_flag("--allow-data-change", settings->allow_data_change,
               "resume although the data is not what the run was started on; it is read from its beginning")
      ->group("Input and output");
  app.add_option("--eval-data", settings->eval_data,
                 "shards to evaluate on, before, during and after training")
      ->type_name("FILE")
      ->group("Input and output");
  app.add_option(
         "--eval-split", settings->eval_split,
         "hold a share (0.05) or a number (200) of the documents of --data out of training, and evaluate on "
         "them; see HOLDING OUT")
      ->type_name("SHARE|COUNT")
      ->excludes("--eval-data")
      ->group("Input and output");
  app.add_option("--eval-split-seed", settings->eval_split_seed,
                 "another choice of the documents that --eval-split holds out (default: 0, whatever --seed)")
      ->group("Input and output");
  app.add_option(
         "--eval-every", settings->eval_every,
         "steps between evaluations; 0: only before and after (default: a tenth of the run, 10 to 500)")
      ->group("Input and output");
  app.add_option(
         "--early-stop", settings->early_stop,
         "end the run, saved, once so many evaluations in turn were no better than the best before them "
         "(default: never)")
      ->type_name("PATIENCE")
      ->group("Input and output");
  app.add_option("--eval-tokens", settings->eval_tokens,
                 "evaluate on about this many tokens of --eval-data or --eval-split (default: all)")
      ->group("Input and output");
  app.add_option(
         "--save-every", settings->save_every,
         "steps (200) or time (90s, 10m, 1.5h) between checkpoints, or epoch: after each pass over the data; "
         "0: only at the end (default: a tenth of the run, 10 to 500 steps)")
      ->type_name("N|TIME")
      ->group("Input and output");
  app.add_option(
         "--async-save", settings->async_save,
         "whether a thread of its own writes checkpoints, from a copy of weights and moments; auto: on where "
         "memory has room for the copy and steps are left to train beside it")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->group("Input and output");
  app.add_option("--keep", settings->keep, "newest checkpoints to keep; 0: all")->group("Input and output");
  app.add_option(
         "--keep-best", settings->keep_best,
         "besides these, keep the checkpoints of this many lowest evaluation losses; each checkpoint is then "
         "evaluated, and the link best points to the first of them; needs --eval-data or --eval-split")
      ->group("Input and output");
  app.add_flag("--save-model-only", settings->save_model_only,
               "checkpoints hold the model alone, a third of the size; no run resumes from them")
      ->group("Input and output");
  app.add_flag(
         "--compress-state", settings->compress_state,
         "compress trainwright_state.safetensors of each checkpoint without loss, as ckpt-compress does; the "
         "model's files stay plain")
      ->group("Input and output");
  app.add_flag("--compress-model", settings->compress_model,
               "compress model.safetensors of each checkpoint likewise; our tools read it, transformers does "
               "not before "
               "ckpt-compress -d")
      ->group("Input and output");
  folder(app.add_option("--copy-to", settings->copy_to,
                        "folder that gets a verified copy of every checkpoint, in the background; see COPIES")
             ->group("Checkpoint copies"));
  app.add_option(
         "--copy-command", settings->copy_command,
         "shell command that copies a checkpoint, in the background: its path is in TRAINWRIGHT_CHECKPOINT, "
         "and the last argument unless the command names that variable")
      ->type_name("CMD")
      ->excludes("--copy-to")
      ->group("Checkpoint copies");
  app.add_flag("--copy-compress", settings->copy_compress,
               "copies of --copy-to are step-NNNNNNNN.twc, for ckpt-compress -d")
      ->group("Checkpoint copies");
  app.add_option("--copy-retries", settings->copy_retries, "further attempts when a copy fails")
      ->group("Checkpoint copies");
  app.add_option("--copy-timeout", settings->copy_timeout,
                 "time (90s, 10m, 1.5h) after which --copy-command is stopped and has failed")
      ->type_name("TIME")
      ->group("Checkpoint copies");
  app.add_option("--copy-queue", settings->copy_queue,
                 "checkpoints that may wait for their copies; beyond, the oldest gives way until the end")
      ->group("Checkpoint copies");
  app.add_flag("--delete-after-copy", settings->delete_after_copy,
               "delete a checkpoint once its copy is verified (of a command: has ended with 0), but for the "
               "newest one "
               "and the best")
      ->group("Checkpoint copies");
  app.add_option("--log-every", settings->log_every, "steps between step records in metrics.jsonl")
      ->group("Input and output");
  folder(app.add_option(
                "--report", settings->report,
                "make report.svg, report.html and training_metrics.json of a run directory anew from its "
                "metrics.jsonl, and nothing else")
             ->group("Input and output"));
  folder(app.add_option("--cache-dir", settings->cache_dir,
                        "where --data - keeps the shards in a nameless file (default: $TMPDIR, or /var/tmp)")
             ->group("Input and output"));

  app.add_option("--model", settings->model,
                 BuiltInDescriptions().DescribePresets() +
                     "; or the path of a config.json of one of these families (default: by device)")
      ->group("Model");
  app.add_option(
         "--init", settings->init,
         "start a new run from the weights and the shape of this model: a folder of Hugging Face "
         "transformers, a checkpoint, or a run directory; takes the place of --model. Its tokenizer must be "
         "the data's. A run that is resumed has its own weights")
      ->group("Model");
  app.add_option("--lora", settings->lora,
                 "train low-rank adapters of this rank and nothing else, see ADAPTERS")
      ->type_name("RANK")
      ->group("Model");
  app.add_option("--lora-alpha", settings->lora_alpha,
                 "adapters are scaled by this over the rank (default: twice the rank)")
      ->group("Model");
  app.add_option("--lora-dropout", settings->lora_dropout,
                 "probability of dropping an element of an adapter's input in training (default: 0)")
      ->group("Model");
  app.add_option(
         "--lora-targets", settings->lora_targets,
         "matrices that get an adapter: all-linear, attention, mlp, or names with commas between them, "
         "such as q_proj,v_proj (default: all-linear)")
      ->type_name("NAMES")
      ->group("Model");
  app.add_option("--quant", settings->quant,
                 "keep the frozen matrices beside adapters in 4 bits: nf4 with double quantisation (default: "
                 "none)")
      ->check(CLI::IsMember({"none", "nf4"}))
      ->group("Model");
  app.add_option("--adapter", settings->adapter,
                 "go on with this adapter in peft's layout, with a new optimizer; its base is --init, or the "
                 "folder that its adapter_config.json names")
      ->type_name("DIR")
      ->group("Model");
  app.add_option(
         "--merge", settings->merge,
         "instead of training, add this adapter to the weights of its base (--init, or the folder that "
         "its adapter_config.json names) and write the sum as a model folder to --out")
      ->type_name("DIR")
      ->group("Model");
  app.add_flag("--allow-other-base", settings->allow_other_base,
               "with --adapter or --merge, take the adapter although its metadata.json records the sha256 of "
               "another "
               "base")
      ->group("Model");
  app.add_option("--mixed-precision", settings->mixed_precision,
                 "no, bf16, fp16 (with dynamic loss scaling), or auto: bf16 where the device is fast at it "
                 "(default: no)")
      ->check(CLI::IsMember({"no", "bf16", "fp16", "auto"}))
      ->group("Model");
  app.add_option("--seed", settings->seed, "of the initial weights and the order of the data (default: 0)")
      ->group("Model");

  app.add_option("--steps", settings->steps, "optimizer steps (default: one epoch, at least 100)")
      ->group("Length");
  app.add_option("--epochs", settings->epochs, "passes over the data")->group("Length");
  app.add_option("--tokens", settings->tokens, "tokens to train on, rounded up to whole steps")
      ->group("Length");
  app.add_option(
         "--max-minutes", settings->max_minutes,
         "save and stop after the step in which this time ends; the schedule does not change; 0: no limit")
      ->group("Length");

  app.add_option(
         "--watchdog", settings->watchdog,
         "when the loss diverges: warn, or stop (save and exit with 6); off also silences the warnings of "
         "slow data and growing memory")
      ->check(CLI::IsMember({"off", "warn", "stop"}))
      ->group("Length");
  app.add_option("--watchdog-ratio", settings->watchdog_ratio,
                 "a loss diverges when three in a row exceed this many times its moving average")
      ->group("Length");
  app.add_option("--cost-per-hour", settings->cost_per_hour,
                 "price of an hour of this machine, in any currency: metrics and reports then tell the cost")
      ->check(CLI::NonNegativeNumber)
      ->group("Length");

  app.add_option("--batch", settings->batch,
                 "samples in a micro-batch (default: about 2,048 tokens on a CPU, 16,384 on a GPU)")
      ->group("Step");
  app.add_option("--accum", settings->accum, "micro-batches in an optimizer step (default: 1)")
      ->group("Step");
  app.add_option(
         "--seq", settings->seq,
         "most tokens in a sample; longer documents are split (default: the model's context, at most 2048)")
      ->group("Step");

  app.add_option("--lr", settings->lr, "peak learning rate (default: 0.5 / hidden size, at most 0.003)")
      ->group("Optimizer");
  app.add_option("--schedule", settings->schedule,
                 "learning rate over the run, see SCHEDULES (default: cosine)")
      ->check(CLI::IsMember({"cosine", "linear", "constant", "wsd", "one-cycle"}))
      ->group("Optimizer");
  app.add_option("--warmup", settings->warmup,
                 "steps of warm-up (default: a twentieth of the run, at most 1000; one-cycle: a tenth)")
      ->group("Optimizer");
  app.add_option("--warmup-ratio", settings->warmup_ratio,
                 "warm-up as a share of the run, rounded up to whole steps, in place of --warmup")
      ->group("Optimizer");
  app.add_option("--decay-steps", settings->decay_steps,
                 "last steps of the run in which wsd decays (default: a fifth of the run)")
      ->group("Optimizer");
  app.add_option("--min-lr-ratio", settings->min_lr_ratio,
                 "learning rate at the last step over the peak (default: 0.1; wsd: 0); not for one-cycle")
      ->group("Optimizer");
  app.add_flag("--cycle-momentum", settings->cycle_momentum,
               "with one-cycle, move beta1 from 0.95 to 0.85 and back, against the learning rate")
      ->group("Optimizer");
  app.add_option("--beta1", settings->beta1, "AdamW's decay of the first moment (default: 0.9)")
      ->group("Optimizer");
  app.add_option("--beta2", settings->beta2, "AdamW's decay of the second moment (default: 0.95)")
      ->group("Optimizer");
  app.add_option("--adam-eps", settings->adam_eps, "AdamW's epsilon (default: 1e-8)")->group("Optimizer");
  app.add_option("--optimizer-states", settings->optimizer_states,
                 "how AdamW's two moments are kept: fp32 (default), or bf16, stochastically rounded, in half "
                 "the memory")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->group("Optimizer");
  app.add_option("--weight-decay", settings->weight_decay,
                 "decoupled decay of the matrices, embeddings among them; norms have none (default: 0.1)")
      ->group("Optimizer");
  app.add_option("--clip", settings->clip, "largest gradient norm; 0: no clipping (default: 1)")
      ->group("Optimizer");

  app.add_option("--objective", settings->objective,
                 "what is predicted. lm: every token; sft: of conversations (pretokenize --records sft) what "
                 "--loss-on "
                 "says; auto: sft if the data holds conversations")
      ->check(CLI::IsMember({"auto", "lm", "sft"}))
      ->group("Loss");
  app.add_option(
         "--loss-on", settings->loss_on,
         "with --objective sft: assistant for the answers and the marks that end them, all for every token "
         "(default: assistant)")
      ->check(CLI::IsMember({"assistant", "all"}))
      ->group("Loss");
  app.add_option("--z-loss", settings->z_loss,
                 "adds this times log^2 Z to the loss of a label, Z the softmax's denominator (default: 0)")
      ->group("Loss");
  app.add_option("--label-smoothing", settings->label_smoothing,
                 "share of a label's weight that all tokens get evenly (default: 0)")
      ->group("Loss");

  app.add_option("--workers", settings->workers,
                 "threads that decode and cut samples ahead; 0: the training thread does it; auto: by device")
      ->group("Loader");
  app.add_option("--prefetch", settings->prefetch,
                 "windows of 64 chunks under way or ready, a worker (default: 1 on a CPU, 2 on a GPU)")
      ->group("Loader");
  app.add_option(
         "--pin", settings->pin,
         "whether micro-batches go to a GPU through pinned memory, which is not waited for; no effect on "
         "a CPU")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->group("Loader");
  app.add_flag("--drop-last", settings->drop_last,
               "skip the samples left of an epoch that do not fill a step, so that no step mixes two epochs")
      ->group("Loader");

  app.add_option(
         "--shuffle-block", settings->shuffle_block,
         "chunks that follow each other in the data and stay together when it is shuffled (default: 1)")
      ->type_name("N")
      ->group("Loader");
  app.add_option("--data-cache", settings->data_cache,
                 "bytes of decoded shards to keep for random access, as 64MiB or 1GB; auto: 64 MiB where "
                 "chunks share "
                 "frames, else none")
      ->type_name("SIZE")
      ->group("Loader");
  app.add_option("--skip-bad-chunks", settings->skip_bad_chunks,
                 "train on when up to so many chunks cannot be read: others take their places")
      ->type_name("N")
      ->group("Loader");

  app.add_flag("--dry-run", settings->dry_run,
               "tell memory, steps, tokens, time and disk of the run by running one micro-batch, and stop")
      ->group("Instead of training");
  app.add_flag("--explain", settings->explain, "print every option, its value, who gave it and why, and stop")
      ->group("Instead of training");

  app.add_flag("--auto-oom", settings->auto_oom,
               "where memory runs out, halve the micro-batch, accumulate over twice as many, and go on with "
               "the same "
               "samples a step")
      ->group("Memory");
  app.add_flag("--find-batch", settings->find_batch,
               "measure, for at most about 20 s, the smallest --batch that trains about as fast as any that "
               "fits; with "
               "--batch or --accum a step keeps its number of samples")
      ->group("Memory");
  app.add_option(
         "--mem-fraction", settings->mem_fraction,
         "fail, with status 5, what would take more than this share of the memory that is available at the "
         "start; of a GPU, of its whole memory")
      ->type_name("F")
      ->group("Memory");
  app.add_option(
         "--checkpoint-activations", settings->checkpoint_activations,
         "what of the layers' activations is computed again in the backward pass instead of kept: no; "
         "selective: the inner activations of the MLP; full: all but the layers' inputs")
      ->check(CLI::IsMember({"no", "selective", "full"}))
      ->group("Memory");
  app.add_option(
         "--offload", settings->offload,
         "what waits in pinned host memory (GPU) or in a file (CPU) until it is needed. activations: what "
         "the "
         "layers keep for the backward pass; gradients: those of the layers that are not worked on; all: "
         "both")
      ->check(CLI::IsMember({"no", "activations", "gradients", "all"}))
      ->group("Memory");
  app.add_option("--offload-dir", settings->offload_dir,
                 "folder of that file, which has no name (default: $TMPDIR, or /var/tmp)")
      ->type_name("DIR")
      ->group("Memory");

  AddDeviceOptions(app, "Device", &settings->device, &settings->attn_backend, &settings->threads);
  app.add_option("--peak-tflops", settings->peak_tflops,
                 "peak rate of the device in 1e12 operations a second, for mfu in the records (default: the "
                 "published dense rate of a GPU that is known by name; see UTILISATION)")
      ->check(CLI::PositiveNumber)
      ->group("Device");
}

}  // namespace trainwright
