extension PredicateValue {
    /// Whether two values are equal.
    ///
    /// Two nils are equal. Nil and another value are not, and neither are values of different kinds.
    package func isEqual(to other: PredicateValue, folding: StringFolding) -> Bool {
        switch (self, other) {
        case (.int(let lhs), .int(let rhs)): lhs == rhs
        case (.string(let lhs), .string(let rhs)): folding.areEqual(lhs, rhs)
        case (.double(let lhs), .double(let rhs)): lhs == rhs || (lhs.isNaN && rhs.isNaN)
        case (.int(let lhs), .double(let rhs)): !rhs.isNaN && exactOrder(lhs, rhs) == 0
        case (.double(let lhs), .int(let rhs)): !lhs.isNaN && exactOrder(rhs, lhs) == 0
        case (.date(let lhs), .date(let rhs)): lhs == rhs || (lhs.isNaN && rhs.isNaN)
        case (.uuid(let lhs), .uuid(let rhs)): lhs == rhs
        case (.data(let lhs), .data(let rhs)): lhs == rhs
        case (.reference(let lhs), .reference(let rhs)): lhs == rhs
        case (.entity(let lhs), .entity(let rhs)): lhs == rhs
        case (.collection(let lhs), .collection(let rhs)):
            lhs.count == rhs.count && zip(lhs, rhs).allSatisfy { $0.isEqual(to: $1, folding: folding) }
        default: isNull && other.isNull
        }
    }

    /// The order of this value and the other: negative, zero or positive.
    ///
    /// It is `nil` if they have no order, because one is nil or they are of different kinds.
    package func order(_ other: PredicateValue, folding: StringFolding) -> Int? {
        switch (self, other) {
        case (.int(let lhs), .int(let rhs)): return lhs < rhs ? -1 : (lhs == rhs ? 0 : 1)
        case (.double(let lhs), .double(let rhs)), (.date(let lhs), .date(let rhs)):
            if lhs < rhs { return -1 }
            if lhs > rhs { return 1 }
            return lhs == rhs ? 0 : nil
        case (.int(let lhs), .double(let rhs)): return rhs.isNaN ? nil : exactOrder(lhs, rhs)
        case (.double(let lhs), .int(let rhs)): return lhs.isNaN ? nil : -exactOrder(rhs, lhs)
        case (.string(let lhs), .string(let rhs)): return folding.order(lhs, rhs)
        case (.uuid(let lhs), .uuid(let rhs)):
            return withUnsafeBytes(of: lhs.uuid) { left in withUnsafeBytes(of: rhs.uuid) { byteOrder(left, $0) } }
        case (.data(let lhs), .data(let rhs)):
            return lhs.withUnsafeBytes { left in rhs.withUnsafeBytes { byteOrder(left, $0) } }
        case (.reference(let lhs), .reference(let rhs)):
            return lhs == rhs ? 0 : ((lhs.store, lhs.entity, lhs.key) < (rhs.store, rhs.entity, rhs.key) ? -1 : 1)
        default: return nil
        }
    }
}

/// The order of an integer and a double that is not NaN, by their exact values.
package func exactOrder(_ integer: Int64, _ double: Double) -> Int {
    if double >= 0x1p63 { return -1 }
    if double < -0x1p63 { return 1 }
    let whole = double.rounded(.towardZero)
    let truncated = Int64(whole)
    if integer != truncated { return integer < truncated ? -1 : 1 }
    let rest = double - whole
    return rest > 0 ? -1 : (rest < 0 ? 1 : 0)
}

package func byteOrder(_ lhs: UnsafeRawBufferPointer, _ rhs: UnsafeRawBufferPointer) -> Int {
    let common = min(lhs.count, rhs.count)
    if common > 0, let left = lhs.baseAddress, let right = rhs.baseAddress {
        let result = memcmp(left, right, common)
        if result != 0 { return result < 0 ? -1 : 1 }
    }
    return lhs.count < rhs.count ? -1 : (lhs.count == rhs.count ? 0 : 1)
}

/// Calls `body` with the bytes of a string, in place if they are contiguous.
@inline(__always)
package func withBytes<Result>(of string: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows
    -> Result
{
    if let result = try string.utf8.withContiguousStorageIfAvailable(body) { return result }
    var copy = string
    return try copy.withUTF8(body)
}

package func equalBytes(_ lhs: String, _ rhs: String) -> Bool {
    withBytes(of: lhs) { left in
        withBytes(of: rhs) { right in equalBytes(left, right) }
    }
}

package func equalBytes(_ lhs: UnsafeBufferPointer<UInt8>, _ rhs: UnsafeBufferPointer<UInt8>) -> Bool {
    guard lhs.count == rhs.count else { return false }
    guard let left = lhs.baseAddress, let right = rhs.baseAddress, lhs.count > 0 else { return true }
    return memcmp(left, right, lhs.count) == 0
}
