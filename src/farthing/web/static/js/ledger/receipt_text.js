// A receipt on its way from the screen of a release to the ledger's, so that nobody has to copy it.

let handed = null;

export function handOver(receipt) {
  handed = receipt;
}

/** The receipt that was handed over, once. */
export function takeReceipt() {
  const text = handed;
  handed = null;
  return text;
}
