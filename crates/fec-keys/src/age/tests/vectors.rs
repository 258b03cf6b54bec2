//! Files that Go's age 1.3.2 made for keys of its own and of OpenSSH. The files are in base64.

/// The plaintext of all these files.
pub(super) const PLAINTEXT: &[u8] = b"the content key of thirty-two by";
/// An identity of X25519.
pub(super) const X25519_KEY: &str = "\
    AGE-SECRET-KEY-14MJE6V53YRVA6DGWARJLRFZ4Z4UHYS0SVUV6QM5C94C96GF60G8SVGSSAA";
/// Its recipient.
pub(super) const X25519_RECIPIENT: &str = "\
    age1cz820znsh50796rflpf37hef475q869xfgp9fyexpy6f2zufjd6q7mylke";
/// A file for it.
pub(super) const X25519_FILE: &str = "\
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBFeGFyWW54VmdZL1FvTlp5OUEvcTBGK1poZlBJb2ZIQ3ZzT0xWZnhhTVdF\
    ClRaL09TTjUzNXI2VCszYTBNOWdZMk9BREZYbkFaQ2luNkJtb3JZV3hnNlUKLS0tIFA2REdyR0FUNVM4TjVpVmM2YTlMY0dTT29o\
    QStiLzVxMjIyK29pYytqWjAKo90k0bEL5VzruHvYBQrTfGifYK/jhp9Y2pUZejHZCY7ZYNYb+u9g2QQO65Q5JzftMxl1N07+T5Lm\
    wutZUfenkA==";
/// A hybrid identity.
pub(super) const HYBRID_KEY: &str = "\
    AGE-SECRET-KEY-PQ-1JMJSERM2V9EWC799T25CP5G47YZ3U8J67583V66T2ZH4RW8NC47SGC3CGQ";
/// Its recipient.
pub(super) const HYBRID_RECIPIENT: &str = "\
    age1pq1x053k6k9c2y5kvt28jd2u6epx4qulmhphtwzhwcgzwf5n6xgrmnnpkzg8sdzfpgmfq40jvtc4sjh4zgh34w30ffnkcfsy\
    qptuc392wqqractn2805r90nsx0x6jeekqnrdr6f82vzqw5mcvxt2tq8p3nhf72ttk6jtrxu9tfa6k9ttft963gq0ftzptnzy68s\
    hnj9738ntcsvxgku2alqev6shds30l6s0f9ya0n9qekx46thmvsa6cpzc330ymhjxx4nf5kgs4r0fl4ys5gglu7zvrxq37ggntk7\
    t8v3q3l9fxygg405xdq379fm9q3gvhgcja97jp6mgnacj2h90nevk3n50uew5tfjwqr3v2386k42rdgz84zm3q3dfzhsfvm9wjmt\
    8cyhdgnk3292a2mgxdhk48n5ghh243772md7xqvm4a9g4nhtae6yrr4aj5z09uyycqgudg8n2v2ggxwzytmrsmhewfnfg2kwnu8d\
    ysvmgtm63y88lk2908nsqtykupwuq98nz6df3pycmqqqkrutdtuvdtuu9tv8tcpgvvshr9v2agnja6028qr4td6at2qtyzr40kdy\
    6h552dwh39jzpvfwlhlrn7nmykmrwdqwlftlrzszevtzlq22mzq0gyzz9avgl568v2egjknkjpedfx0w32pz3lt0n0xdf3tes7s6\
    5vgkl35p4kgnesthwxsf9exfznre425jal9vx5en8lrr27gfcm58sz88dkrscy0rfl2g5umcsgpr6ah8zjcdlfpy6xmts2ngvp3d\
    434tgwmn2ysck6davtgwqzwx3ye2v5kkdj4hncezgq3f2q8p5dxjtw897rzvm8s0q9jaj30ajkrg9ut5jcss4znc5f42gssa2d2l\
    8f42a2szrnr3d3uw2twuls8q45ecrmc9xw57x0whuad3sa9fle3sruvsdxs0xnle6admxvkk862ftkeswz8hj6c9dty3xru2pxcc\
    xrdqtqq6ryk7duxjlv5re9mymyukp2rz0x46scmhka9xwxz2z3rx5ug5fdzyeymruxtl8l9xjf8c3vx8gnua270qpwxaxvjvy3uy\
    gflhqx5skqcng5nrn76wplvvz384swe5423zyase88c2vmmkcuy7hr53j6ak2gzyvafykcz085s639qjwqe7vn8x38qwqeew7y42\
    wgewz2gpzcy0v42nxn2zrayk4ch5fjg3kzqlcgtveakwcwsxz8gee4ye245lfckwccvz0hr2mxrekmqy8wyxt9md220559jppzrm\
    cc592dswct8jl4ft992vxltlqt4mu5qfvfq2g0z5w3x69ekt6ae4cuyak62hafd5lxxs22znhz6wwpekm0ph462jax4zfmtnegp4\
    82u8jt82pxpqrryf2rmr6dae0gme5lzc0fh40a88v7rqqtugl4n3s4nzex0p33dtzz9mkm34lkqst89zhh8nwvp3g6jphqen7mpe\
    65kelfzfjfvaj4x5ejsa5q2l436qn4r3jysyderjy5wqy5sy5ec227mfprwe36unjk8d2app5g6exskzuvkxvpqzcjjwse96j6rs\
    4r50na8uuwttd2642vtmnx6cw3pv5qjx7fl54yypa6e8cg9sp7u42s0nweuewvtdt3kaz6vhmjyf9w2wl809xaxyjf8j2ky06fkg\
    8f6es6mqvnwpm6sx97hswsl8p4xlw703wqzu4tnyxt3f3sgsq0n0qyh3735xp4gep7yt30vs5fjcafu6geyp6ut66qzx5vass0p4\
    2keyamclfcn7qvpprgnez8qr9m8hgqz6uag8dsfrg0wy9ky6zldeatf66m0997wcu6ht6vcxr38qll09wcsglvqdv557q7377jns\
    ql33gjplj6274x9gwjk3r6t7r3sq65npefetyx2utdenngwav29fc36u9c6";
/// A file for it.
pub(super) const HYBRID_FILE: &str = "\
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IG1sa2VtNzY4eDI1NTE5IGNtSlFJSmNCcXFyMXlNdDlNYjNqcHJsZmplaG5nZnBQVVhl\
    Z0lXTE9NMldqR2IrRVI0RithWjRNcThjVW5jRjlMbGRtK1d6cGlJZVVjYTloNE8wcVNiTFZPT0Z0cVdocGlFTmpYeTdwUE5zc2NT\
    NkFRVGJrbnpCZDQvTXVMME1mY1VXd2wvTDlBditxQ2ZRTEpUVnp4MUEyZmhyTWw0ajZwM1VnZUw5MHVGbmNOOGl2RTlNZUc3N0hV\
    dkgzdnhkZHR6SzA2dUd0SjduMzgxaFRaT3JDMkZvTGhHTDNCY216Z01Cd1BrNFBncWlpVGRtYkNsNkhWaUJqYmxjQWlyNE1Ma0l3\
    aHdrNG5jMEFMeU91bWZsVC9vSStpWUVpdEMvYW9meUp4TmxpNkZ1R2xFM2xwWlI0bFlHLzRLUHJZM0E0dk1JV1JzNUJKR1JWckN2\
    Sy9nOVhMZUFSSTM3VGVvQWR4dnltOVVwOW1yc3NnOVRVYXBaUmVwN3IzbFdnT1lZeUZYbE43ZUlsMkNaVE9ramNzYjhMekdnYkU3\
    VStHY1Q1MzQ2aG5sVFpRbEFtK2ZJcnZwV09vY1E3V3FTSmZrY3M0alNFcUFDd29ubS9KbUNYaytDS2NZUXNZS2F3OVpLZk9vS2pi\
    a1FYZU13U0x3QW5POGdHVGxFdkZDYTZjNUYxT3Y3ejcra3hQNzBhOTdEQ1o2TGJJZEVRcGJ6cEpnZDRWV0lFV21EeDRkZmhxOHJL\
    dHJiYUo0UDlPT0xmZE1YRnJ3Sm1OaG1jUTYzMWdINFh2aFhTY2NBb2RuV2ErVFlqMytlNzZpTFJjT0RvTkFoWVJNUGpVR2d4OFRi\
    YlJhVU5kTGp1Rzg2NElTcTltODlpQXBBTi9Ma3JSUFFtZjgxL21DYVQ2bFp5Z3NONE02VDlaNmhGWjFzQ1BHVGUxZE5NeWEvOUpa\
    TW1tR3dNYWViUk9MZy93cCtqOHpyVzYzSjhsUGwzUGVRZ3IyY1ZGQ0JBVG1qRytPcE9vWkU2K0U2QUZDMmd2NkhCUHlBRlJTMTQ5\
    RnpTRGZmajFUMVdIbkJkVHJ1STVLNlNpU1BGMWFWdE9jRFN6d2U5WG1KTkQ4RDZINzF3UTJKcFdaRmZFMjJqWXNLZnBUMVhFZzI4\
    YUlSemE5YlNqUExyWk5CSmZHei9VRXdVTnZISkphbzFqTkNVR3JkQmdlTVZ1UEFPWUNkRXh2bFhqNzlaWXFIY0NhYXZMVTNXcVRx\
    MW0yWmpXdWs3SGxNcXBVUDUzek5UYUhNNzNDeno0MUIwSjBRVklWTm53eTlZMFZsbThLOXJneGJCVWNnZFVIM1JmTlRMVjVhbDdZ\
    Z3NrL0E0d0V3cHVqUmVwNUs4djczM3V1QXh3aWR3bDk0b0xGMWtKcjQ0MTJNWEYzSFp4QnlGZ0xsSTlnMUhQbUgzV2ZHSXFPNU5N\
    SnJIcWtvNU1yRTM2M2lzNnJqalVGRFRicnpFWktBSVhqK1FrV3gya2d2ZG1KUjBPdTdPMHpFckthY3lINURDN3c1dzdjNjdkQ2hF\
    K3paOVYyNG1PRG16bzJxaU5MK3JOT2hFc2I3WHFiVDR6bXBLU3Y1VGpreVk1R1k0dlFsdGhwQTk4L1M5OUhydTBrS1Q0M2I2T3M2\
    M2NhWDdPVDYwMnIyeExDUWQ0SzVyZVNzK0ZoNzAzSmRDZUU5WkxORmtiRkZDMDFnZ1FoRWNDVUc2VkVxZ3MveEYzVjB4eWN0U3dr\
    RTh2T0EydTNRZUNYRGR6WWNzcGlXTWFOWFMwWkZaaFpBMXdHM3N2ODA4cmhrdFJiZnZRQi91ajJsbFhYMm1ZSTB4cmxUSlJQQmNo\
    Q1VsckpOMGpadUpQQUJUYkVuMFJJWVEzdEFselZ6Q3VVRmNxdFpUdTNiQ2IxWllIVUZvWE5BaWZBWGlCNkV5UUFqVzluL1dEbGo0\
    YURWZldraEVnSHB3NzZyUXVISlhoSjNNbFhPOEl2R2xIZwo2eGZJejhMVUZzQlhBTFhFMFJBdFM1RTJaQVVTZHp0aVBUWVhrNURO\
    MExnCi0tLSBsQ2sybk50L1pkNUUxNkxzc29rV2R4ZVVlWUk5UWJJbVBLOHRrU24wc2NNCj4S71ViW3QCg4PJUpHgvuGD3mXm0/0r\
    E0qdx+yldFH1EADRIbR//HNBQVrReB7rzSf9ULAVWlThOPlMJwMhylg=";
/// A private key of OpenSSH.
pub(super) const SSH_KEY: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACC7KIXExiAy1hVWvKqCHQVz7Jo7yMl76ts3FmMTzLI9VgAAAJAYUT8UGFE/
FAAAAAtzc2gtZWQyNTUxOQAAACC7KIXExiAy1hVWvKqCHQVz7Jo7yMl76ts3FmMTzLI9Vg
AAAEAyWS7h8nYztRZCK9cYooNrNMrtbSBRJpDoUgzgQGJJersohcTGIDLWFVa8qoIdBXPs
mjvIyXvq2zcWYxPMsj1WAAAACWEgY29tbWVudAECAwQ=
-----END OPENSSH PRIVATE KEY-----
";
/// Its public key.
pub(super) const SSH_RECIPIENT: &str = "\
    ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILsohcTGIDLWFVa8qoIdBXPsmjvIyXvq2zcWYxPMsj1W a comment";
/// A file for it.
pub(super) const SSH_FILE: &str = "\
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNzaC1lZDI1NTE5IGQwL00xUSA5aXh1cjltcnltT25Tc1VOWUk3eEtXMXA5bTlQT3FE\
    VUhWRnE5Nnl1UVdzCmx6dDBhVGdnZC9qczQvMmw2RXpJK0g4dFU5U1pHSTlyYVNTWVd1VnlJcWsKLS0tIGRzUi85c21vcVJvUnc3\
    Z0NlZC9KaVVYUE0rK3Vib3lxMW40dVIvVUNMOUUKuhvmRboVU8spjlbaGKIbY49jjH2bXy/9cJw6Dc+DDSo93d+EpThh7GrvhYZi\
    Xkvocb7utBw1WAtrfC5vk/FAgA==";
/// A private key of OpenSSH behind the passphrase `elf letters`.
pub(super) const LOCKED_SSH_KEY: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDeY/qxZ8
H8pAj3G3C0wc/zAAAABAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIL3UxfJqzfedieef
s8Xb5DKrSiwBNhVDRN0/jA+fYzCxAAAAkJT7M9TDZIb9BDexu3D7BNVzoziuacqC4RK7Bz
UmUjiZH6Ig6zdaKndj2kAVRcI9ru1+zovVPs/0LkztHLrNG5N2TdicoNikanCWU8q4O7iR
U2fAO1SP47HpxSR8fbR9e6DwMAi5t0ErTweVl38TSHGFWahgSz3GHszf1rPLe892sWP+kc
D5JdTz1HYm1u33Kg==
-----END OPENSSH PRIVATE KEY-----
";
/// A file for it.
pub(super) const LOCKED_SSH_FILE: &str = "\
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNzaC1lZDI1NTE5IEl6dnE5USBjMm53YXZGaHZSUkhWTjR1S3lxRVBMWjBDSStIWnJx\
    NVI3UmpPbzVsMWc4CndnK2o2algrVnRSbU5NZDR5K2xqTGFZVkw5WkNzOEFYWllnZ3JCdXdpbEEKLS0tIG1HTGtOZzJPYUR3dDBl\
    T1NpYkN5WXYvNkt1K3Uyc2JFam1MRFplVXV3TEUK7RZXnQ3rdDPYVG4TxP2POCM2x0D7SiRlp3cFz7y/E7c9HvPkL5nLyWNw1m+w\
    0jBROknvGVYRFXbiDy3BlBOOEA==";
/// A file for the passphrase `correct horse`, with a work factor of 10.
pub(super) const PASSPHRASE_FILE: &str = "\
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBDNG9KNCtvanZ0N3dQNWU1SEFyVVpnIDEwClJQcTJZdTY4ZVJ4eTJhK0ZY\
    YU1SK1FaT1NTeUgzUDVqYlpvM3NCdTFEaE0KLS0tIEJtWVJGOUVoa1oyZVFmWEVJZ2E1NnNnWnlJbVU0NkEwUFFjYkZ4WXpPaUEK\
    Q545gZej26mDwsQW4OwyUAHTSAUJoShaynCddA6RZ3zWmZMTUvzSMxEl1O7RyiDE1HgTM3fh8WSiKUjRwaTN/g==";
