import Foundation

extension PropertyListSerialization {
    /// Reads a dictionary from a property list that may be damaged or malicious.
    ///
    /// Foundation on Linux stops the program if a binary list contains a set. No property list should contain one, but
    /// one changed byte can make it. Such lists are refused before Foundation reads them.
    ///
    /// - Parameter data: A list in any format.
    /// - Returns: The dictionary; `nil` if the data is not a property list, or if the list is not a dictionary.
    /// - Complexity: O(*n*) in the number of values.
    package static func dictionary(from data: Data) -> [String: Any]? {
        guard !data.starts(with: "bplist".utf8) || hasPlainValues(data) else { return nil }
        return try? propertyList(from: data, format: nil) as? [String: Any]
    }

    /// Whether all values of a binary property list are of permitted kinds.
    private static func hasPlainValues(_ data: Data) -> Bool {
        let bytes = [UInt8](data)
        // The end contains the sizes of offsets and references, the number of values, the first value, and the start of
        // the offsets.
        let trailer = bytes.count - 32
        guard trailer >= 8 else { return false }
        let size = Int(bytes[trailer + 6])
        guard (1...8).contains(size),
            let count = integer(bytes[(trailer + 8)..<(trailer + 16)]),
            let table = integer(bytes[(trailer + 24)..<(trailer + 32)]),
            table < trailer, count <= (trailer - table) / size
        else { return false }
        for index in 0..<count {
            let start = table + index * size
            guard let offset = integer(bytes[start..<(start + size)]), offset < table else { return false }
            switch bytes[offset] >> 4 {
            case 0x1...0x6, 0xA, 0xD: continue
            case 0x0 where bytes[offset] == 8 || bytes[offset] == 9: continue
            default: return false
            }
        }
        return true
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        let value = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }
}
