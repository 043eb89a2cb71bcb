import Foundation

extension Row {
    /// The number of bytes that ``write(to:)`` fills.
    package var byteCount: Int {
        let layout = layout
        let source = unsafe
        var count = 4 + layout.wordCount * 8
        for place in layout.countedPlaces where !source.isNull(place.slot) {
            count += 8 + (place.isString ? string(place.word).utf8.count : data(place.word).count)
        }
        return count
    }

    /// Writes the values in the form that ``read(from:)`` reads, and returns the place behind them.
    ///
    /// There must be room for ``byteCount`` bytes.
    package func write(to bytes: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        let layout = layout
        let source = unsafe
        return withExtendedLifetime(buffer) {
            var bytes = bytes
            bytes.storeBytes(of: source.header.pointee.nulls, as: UInt32.self)
            let size = layout.wordCount * 8
            (bytes + 4).copyMemory(from: source.words, byteCount: size)
            bytes += 4 + size
            // The words of a counted value mean nothing outside the row.
            for place in layout.countedPlaces where !source.isNull(place.slot) {
                if place.isString {
                    var text = string(place.word)
                    text.withUTF8 { bytes = Self.write(UnsafeRawBufferPointer($0), to: bytes) }
                } else {
                    data(place.word).withUnsafeBytes { bytes = Self.write($0, to: bytes) }
                }
            }
            return bytes
        }
    }

    private static func write(_ value: UnsafeRawBufferPointer, to bytes: UnsafeMutableRawPointer)
        -> UnsafeMutableRawPointer
    {
        bytes.storeBytes(of: value.count, as: Int.self)
        UnsafeMutableRawBufferPointer(start: bytes + 8, count: value.count).copyMemory(from: value)
        return bytes + 8 + value.count
    }

    /// Takes the values that ``write(to:)`` has written, and returns the place behind them.
    ///
    /// Only the owner of the row may call this, as for all members that write.
    package func read(from bytes: UnsafeRawPointer) -> UnsafeRawPointer {
        let layout = layout
        let target = unsafe
        return withExtendedLifetime(buffer) {
            for place in layout.countedPlaces where !target.isNull(place.slot) { target.release(place) }
            target.header.pointee.nulls = bytes.loadUnaligned(as: UInt32.self)
            let size = layout.wordCount * 8
            UnsafeMutableRawPointer(target.words).copyMemory(from: bytes + 4, byteCount: size)
            var bytes = bytes + 4 + size
            for place in layout.countedPlaces where !target.isNull(place.slot) {
                let value = UnsafeRawBufferPointer(start: bytes + 8, count: bytes.loadUnaligned(as: Int.self))
                bytes += 8 + value.count
                if place.isString {
                    target.pointer(String.self, place.word).initialize(to: String(decoding: value, as: UTF8.self))
                } else {
                    target.pointer(Data.self, place.word).initialize(to: Data(value))
                }
            }
            return bytes
        }
    }
}
