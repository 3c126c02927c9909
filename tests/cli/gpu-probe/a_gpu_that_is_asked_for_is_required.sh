# --device cuda, and its variable as train has it, end with status 5 where no GPU can be used, and say why.
export LD_LIBRARY_PATH=
if [[ -e /dev/nvidiactl ]]; then export CUDA_VISIBLE_DEVICES=; fi
fails 5 'gpu-probe: error: --device cuda: ' gpu-probe --quick --disk-size 0 --device cuda
test ! -s out
TRAINWRIGHT_DEVICE=cuda fails 5 'gpu-probe: error: --device cuda: ' gpu-probe --quick --disk-size 0
if [[ ! -e /dev/nvidiactl ]]; then fails 5 'gpu-probe: error: --device cuda: ' gpu-probe --watch --samples 1 --device cuda; fi
