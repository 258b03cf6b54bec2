{
  lib,
  rustPlatform,
  fetchurl,
  installShellFiles,
}:

rustPlatform.buildRustPackage rec {
  pname = "fec";
  version = "@VERSION@";

  src = fetchurl {
    url = "@SOURCE@";
    hash = "@SRI@";
  };

  # Beside this file: the one of the source.
  cargoLock.lockFile = ./Cargo.lock;
  buildAndTestSubdir = "crates/fec-cli";

  nativeBuildInputs = [ installShellFiles ];

  cargoTestFlags = [
    "--test"
    "cli"
  ];

  postInstall = ''
    bash scripts/release/pages.sh $out/bin/fec pages
    installManPage pages/man1/*.1
    installShellCompletion --bash pages/fec.bash --zsh pages/_fec --fish pages/fec.fish
    install -Dm644 examples/systemd/* -t $out/lib/systemd/system
  '';

  meta = {
    description = "@DESCRIPTION@";
    homepage = "@REPOSITORY@";
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "fec";
    platforms = lib.platforms.linux;
  };
}
