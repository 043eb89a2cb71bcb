import StrataLocks
import Synchronization

/// The classes that the compiler has recorded in the program: those of the main program, of libraries and of test bundles.
///
/// Linux has no Objective-C runtime that knows classes by name. But each Swift image has a record of each type that
/// it declares, including private ones, and the Swift runtime lists these images. The records of an image are read
/// once, which takes about a millisecond for a program. If a library is loaded later, then its records are read by
/// the next search for a class. Generic classes are left out, because an entity has exactly one class. Any thread may
/// call any member.
package enum ClassRecords {
    /// The compiler's record of a class: a type context descriptor of Swift's binary interface.
    private struct Descriptor: @unchecked Sendable {
        // @unchecked Sendable: this is part of an image, which is constant and never unloaded.
        let address: UnsafeRawPointer

        /// The class's own name; `nil` for a type that is not a class, has no superclass, or is generic.
        var className: String? {
            let flags = address.load(as: UInt32.self)
            let (kindMask, kindClass, isGeneric): (UInt32, UInt32, UInt32) = (0x1F, 16, 0x80)
            guard flags & kindMask == kindClass, flags & isGeneric == 0, reference(at: 20) != nil else { return nil }
            return reference(at: 8).map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
        }

        /// The class itself; the runtime completes it if it has not been used yet.
        var metadata: Any.Type? {
            // The function uses Swift's calling convention. It takes one word, and the first word of its result is
            // the class. C's convention is the same in that case on the Linux processors that Swift supports.
            typealias Access = @convention(c) (UInt) -> UnsafeRawPointer
            return reference(at: 12).map { unsafeBitCast(unsafeBitCast($0, to: Access.self)(0), to: Any.Type.self) }
        }

        /// The address that a field refers to by its distance.
        private func reference(at offset: Int) -> UnsafeRawPointer? {
            let field = address + offset
            let distance = field.load(as: Int32.self)
            return distance == 0 ? nil : field + Int(distance)
        }
    }

    private struct State {
        var knownSections: Set<UInt> = []
        var byName: [String: [Descriptor]] = [:]
    }

    private static let state = Locked(State())

    private static let images = AtomicCell<Int>(0)

    /// The number of images whose records have been read.
    package static var imageCount: Int { images.load(ordering: .acquiring) }

    /// The classes with a name, whatever type or module they are declared in.
    package static func classes(named name: String) -> [Any.Type] {
        readNewImages()
        let found = state.withLock { $0.byName[name] ?? [] }
        // The lock is not held here, since the runtime takes its own lock to complete a class.
        return found.compactMap(\.metadata)
    }

    /// Reads the records of libraries that were loaded since the last call.
    package static func readNewImages() {
        let sections = TypeSection.all
        state.withLock { state in
            for section in sections where state.knownSections.insert(section.start).inserted {
                for descriptor in section.descriptors.map(Descriptor.init) {
                    if let name = descriptor.className { state.byName[name, default: []].append(descriptor) }
                }
            }
            images.store(state.knownSections.count, ordering: .releasing)
        }
    }
}

/// The part of an image that refers to the descriptors of its types.
private struct TypeSection {
    let start: UInt
    let length: Int

    /// The addresses of the descriptors.
    var descriptors: [UnsafeRawPointer] {
        guard let start = UnsafeRawPointer(bitPattern: start) else { return [] }
        return stride(from: 0, to: length & ~3, by: 4).compactMap { offset in
            let record = start + offset
            let reference = record.load(as: Int32.self)
            // The two lowest bits say how to read the others.
            let address = record + Int(reference & ~3)
            switch reference & 3 {
            case 0: return reference == 0 ? nil : address
            case 1: return address.load(as: UnsafeRawPointer?.self)
            default: return nil
            }
        }
    }

    #if canImport(Darwin) || os(Windows)
    /// On these platforms, classes are looked up by name.
    static var all: [TypeSection] { [] }
    #else
    /// The sections of all images.
    static var all: [TypeSection] {
        var found: [TypeSection] = []
        withUnsafeMutablePointer(to: &found) { found in
            enumerateImages(
                { sections, found in
                    guard let sections, let found else { return true }
                    // A version, an address and two unused words come first. Then come pairs of address and length:
                    // protocols, conformances, types.
                    let words = sections.assumingMemoryBound(to: UInt.self)
                    if words[8] != 0, words[9] != 0 {
                        let section = TypeSection(start: words[8], length: Int(words[9]))
                        found.assumingMemoryBound(to: [TypeSection].self).pointee.append(section)
                    }
                    return true
                },
                found
            )
        }
        return found
    }

    /// Calls a function with the sections of each image that has Swift code, until the function returns false.
    ///
    /// This is a function of the Swift runtime. Swift Testing finds tests by it.
    @_silgen_name("swift_enumerateAllMetadataSections")
    private static func enumerateImages(
        _ body: @convention(c) (UnsafeRawPointer?, UnsafeMutableRawPointer?) -> Bool,
        _ context: UnsafeMutableRawPointer?
    )
    #endif
}
