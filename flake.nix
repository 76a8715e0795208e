# Untested. `nix run github:OWNER/pipetop`
{
  description = "Is my training waiting for data? A monitor for PyTorch jobs.";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEach = nixpkgs.lib.genAttrs systems;
      manifest = (nixpkgs.lib.importTOML ./Cargo.toml).package;
    in
    {
      packages = forEach (system:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          default = pkgs.rustPlatform.buildRustPackage {
            pname = manifest.name;
            inherit (manifest) version;
            src = self;
            cargoLock.lockFile = ./Cargo.lock;
            nativeBuildInputs = [ pkgs.installShellFiles ];
            # The tests read the machine.
            doCheck = false;
            postInstall = ''
              $out/bin/pipetop man > pipetop.1
              installManPage pipetop.1
              for shell in bash zsh fish; do
                installShellCompletion --cmd pipetop --$shell <($out/bin/pipetop completions $shell)
              done
            '';
            meta = {
              inherit (manifest) description;
              license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
              mainProgram = "pipetop";
              platforms = systems;
            };
          };
        });
    };
}
