"""Seeds: receipts and listings of every form."""
import os
import sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
A, B = "a" * 40, "b" * 64
SEEDS = {
    "receipt": '{"format": "assay-receipt-1", "strength": "listing", "upstream": {"repository": "o/n", "revision": "%s"}, '
               '"trees": [{"path": "d", "id": "%s"}], "files": [{"path": "d/x", "size": 3, "sha256": "%s", "git_blob": "%s", "mode": "100644"}]}' % (A, A, B, A),
    "tree": '[{"type": "directory", "oid": "%s", "path": "d"}, {"type": "file", "oid": "%s", "size": 3, "path": "d/x", '
            '"lfs": {"oid": "%s", "size": 3, "pointerSize": 130}}]' % (A, A, B),
    "info": '{"sha": "%s", "siblings": [{"rfilename": "x", "blobId": "%s", "size": 3, "lfs": {"sha256": "%s", "size": 3}}]}' % (A, A, B),
    "cache": '{"format_version": 1, "files": {"x": {"size": 3, "blob_id": "%s", "lfs_sha256": "%s", "lfs_size": 3}}}' % (A, B),
    "sums": '# remark\n%s  x\n%s *d/y\n\\%s  a\\\\b\n' % (B, B, B),
    "tagged": 'SHA256 (x) = %s\nSHA256 (a) = b) = %s\n' % (B, B),
    "answer": 'HTTP/1.1 302 x\r\nLocation: y\r\n\r\nHTTP/2 200\r\nLink: <z>; rel="prev"\r\n\r\n[{"type": "file", "oid": "%s", "size": 3, "path": "x"}]' % A,
    "links": '120000 blob %s       3\tl\n160000 commit %s       -\ts\n' % (A, A),
    "commit": '{"format": "assay-receipt-1", "strength": "commit", "commit_hex": "7472656520", "upstream": null, '
              '"files": [{"path": "x", "size": null, "sha256": "%s", "git_blob": "%s", "mode": "120000"}]}' % (B, A),
    "lstree": '040000 tree %s       -\td\n100644 blob %s       3\t"d/\\303\\244"\n100755 blob %s 4\tz\n' % (A, A, A),
}
for name, text in SEEDS.items():
    with open("%s/%s" % (out, name), "w") as f:
        f.write(text)
with open("fixtures/tiny/receipt.json") as f, open(out + "/tiny", "w") as g:
    g.write(f.read())
