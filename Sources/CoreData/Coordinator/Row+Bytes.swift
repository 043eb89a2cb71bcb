import Foundation

extension Row {
    /// Appends the values, as ``init(layout:bytes:at:)`` reads them.
    func append(to bytes: inout [UInt8]) {
        let layout = layout
        let source = unsafe
        withExtendedLifetime(buffer) {
            withUnsafeBytes(of: source.header.pointee.nulls) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: source.words, count: layout.wordCount * 8))
            // The words of a counted value mean nothing outside the row.
            for place in layout.countedPlaces where !source.isNull(place.slot) {
                if place.isString {
                    var text = string(place.word)
                    text.withUTF8 { bytes.append(counted: UnsafeRawBufferPointer($0)) }
                } else {
                    data(place.word).withUnsafeBytes { bytes.append(counted: $0) }
                }
            }
        }
    }

    /// Makes a new row of values that ``append(to:)`` has written at `place`, which moves behind them.
    init(layout: EntityLayout, bytes: UnsafeRawBufferPointer, at place: inout Int) {
        self.init(layout: layout, key: 0)
        let target = unsafe
        withExtendedLifetime(buffer) {
            target.header.pointee.nulls = bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)
            place += 4
            let words = UnsafeMutableRawBufferPointer(start: target.words, count: layout.wordCount * 8)
            words.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[place..<place + words.count]))
            place += words.count
            for counted in layout.countedPlaces where !target.isNull(counted.slot) {
                let count = bytes.loadUnaligned(fromByteOffset: place, as: Int.self)
                let value = UnsafeRawBufferPointer(rebasing: bytes[place + 8..<place + 8 + count])
                place += 8 + count
                if counted.isString {
                    target.pointer(String.self, counted.word).initialize(to: String(decoding: value, as: UTF8.self))
                } else {
                    target.pointer(Data.self, counted.word).initialize(to: Data(value))
                }
            }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(counted bytes: UnsafeRawBufferPointer) {
        Swift.withUnsafeBytes(of: bytes.count) { append(contentsOf: $0) }
        append(contentsOf: bytes)
    }
}
