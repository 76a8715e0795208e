#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
# A training job that starts its own exporters and a Prometheus: nothing else has to be set up.
# Afterwards, from the login node: pipetop fleet --prometheus http://FIRST_NODE:19090

folder=$SLURM_SUBMIT_DIR/pipetop-$SLURM_JOB_ID
mkdir -p "$folder"
targets=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/.*/'&:9977'/" | paste -sd,)
cat >"$folder/prometheus.yml" <<END
global: {scrape_interval: 15s}
scrape_configs:
  - job_name: pipetop
    static_configs: [{targets: [$targets]}]
END

# Anyone who can reach the port can read the metrics, including names of jobs and users.
srun --overlap --ntasks-per-node=1 pipetop serve --all --web.listen-address :9977 &
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
    --web.listen-address=:19090 &

srun --overlap python train.py

# The background processes end with the job.
kill %1 %2
