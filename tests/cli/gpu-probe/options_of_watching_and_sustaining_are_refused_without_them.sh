# What only --watch or --sustained has a use for is refused without it, with both names, before anything is measured.
for option in '--interval 2' '--samples 3' "--pid $$"; do
  fails 2 "${option%% *}: has a meaning only with --watch" gpu-probe $option
done
fails 2 '--seconds: has a meaning only with --sustained' gpu-probe --seconds 5
fails 2 '--seconds: has a meaning only with --sustained' gpu-probe --watch --samples 1 --seconds 5
