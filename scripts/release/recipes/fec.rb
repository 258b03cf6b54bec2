class Fec < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  url "@SOURCE@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/fec-cli")
    generate_completions_from_executable(bin/"fec", "completions")
    system "scripts/release/pages.sh", bin/"fec", "pages"
    man1.install Dir["pages/man1/*.1"]
  end

  test do
    (testpath/"file").write "payload\n" * 1000
    root = shell_output("#{bin}/fec encode -q -k 10 -m 4 file").strip
    rm Dir["file.shards/*.00[0-3].shard"]
    system bin/"fec", "decode", "-q", "file.shards", "--root", root, "-o", "back"
    assert_equal (testpath/"file").read, (testpath/"back").read
  end
end
