import Foundation
import StrataArchives
import StrataLocks
import StrataRows
import Synchronization

/// Finds the classes that are named in a model.
///
/// A class is known whether or not the program has used it: see ``ClassRecords``. If several classes have the name,
/// then a use of one (`Venue(context:)`, `NSFetchRequest<Venue>`) determines which is meant. Any thread may call any
/// member.
package enum ManagedClasses {
    /// The meaning of a class name.
    enum Meaning {
        case found(NSManagedObject.Type)
        /// Several classes have the name, and no use determines which is meant.
        case ambiguous([NSManagedObject.Type])
        case missing
    }

    private struct State {
        /// The classes that the program has used, and whether another class has the same bare name.
        var used: [ObjectIdentifier: Bool] = [:]
        /// The used classes that the compiler has not recorded, by their bare names.
        var unrecorded: [String: [NSManagedObject.Type]] = [:]
    }

    private static let state = Locked(State())
    /// The number of uses that may have changed the meaning of a name.
    private static let uses = AtomicCell<Int>(0)

    /// A number that grows when names may have new meanings; classes that were found before are then looked up again.
    static var generation: Int { uses.load(ordering: .acquiring) &+ ClassRecords.imageCount }

    /// Notes that the program uses a class.
    ///
    /// - Returns: Whether another class has the same bare name, so that the entity has to remember which one it means.
    @discardableResult
    static func register(_ type: NSManagedObject.Type) -> Bool {
        guard type != NSManagedObject.self else { return false }
        if let known = state.withLock({ $0.used[ObjectIdentifier(type)] }) { return known }
        let name = bareName(of: type)
        let recorded = recordedClasses(named: name)
        let isRecorded = recorded.contains { $0 == type }
        return state.withLock { state in
            let isShared = recorded.contains { $0 != type } || state.unrecorded[name] != nil
            guard state.used.updateValue(isShared, forKey: ObjectIdentifier(type)) == nil else { return isShared }
            if !isRecorded { state.unrecorded[name, default: []].append(type) }
            if !isRecorded || isShared { uses.add(1, ordering: .releasing) }
            return isShared
        }
    }

    /// The class that a model names; if there are several, the only one that the program has used.
    static func find(_ className: String) -> Meaning {
        let found = candidates(for: className)
        guard found.count > 1 else { return found.first.map(Meaning.found) ?? .missing }
        let used = state.withLock { state in found.filter { state.used[ObjectIdentifier($0)] != nil } }
        return used.count == 1 ? .found(used[0]) : .ambiguous(found)
    }

    /// The classes that a name in a model may mean; more than one if several modules have a class of that name.
    static func candidates(for className: String) -> [NSManagedObject.Type] {
        if ["", "NSManagedObject", "CoreData.NSManagedObject"].contains(className) { return [NSManagedObject.self] }
        let name = withoutDot(className)
        let bare = name.split(separator: ".").last.map(String.init) ?? name
        let unrecorded = state.withLock { $0.unrecorded[bare] ?? [] }
        let all = recordedClasses(named: bare) + unrecorded
        var found = all.filter { fullName(of: $0) == name }
        if found.isEmpty { found = all.filter { matches(name, $0) } }
        // If the name has another module, such as the app that the model was made for, then it means a class of the
        // main program.
        if found.isEmpty { found = all.filter { fullName(of: $0) == mainModule + "." + bare } }
        guard found.isEmpty else {
            // A class that is not inside another type is preferred to one that is.
            let outer = found.filter(isOuter)
            return outer.isEmpty ? found : outer
        }
        // The runtime may know classes by name that are not recorded, as on Apple's platforms.
        for name in [name, mainModule + "." + bare] where name.contains(".") {
            if let found = FoundationClasses.named(name) as? NSManagedObject.Type { return [found] }
        }
        return []
    }

    /// Whether classes of several modules have the name, so that a guess may be wrong.
    ///
    /// Classes inside other types do not count, since a bare name does not mean them.
    static func isOfSeveralModules(_ className: String) -> Bool {
        let found = candidates(for: className)
        return found.count > 1 && found.allSatisfy(isOuter)
    }

    private static func isOuter(_ type: NSManagedObject.Type) -> Bool {
        fullName(of: type).split(separator: ".").count == 2
    }

    private static func recordedClasses(named name: String) -> [NSManagedObject.Type] {
        ClassRecords.classes(named: name).compactMap { $0 as? NSManagedObject.Type }
    }

    /// Whether `className`, as a model spells it, can mean `type`: with its module, without it, or as a part of the
    /// full name.
    static func matches(_ className: String, _ type: NSManagedObject.Type) -> Bool {
        guard className.hasSuffix(bareName(of: type)) else { return false }
        let full = fullName(of: type)
        return className == full || full.hasSuffix("." + withoutDot(className))
    }

    package static func bareName(of type: NSManagedObject.Type) -> String {
        // The full name of a nested class is `Outer.Inner`; a model usually has only the last part.
        _typeName(type, qualified: false)
    }

    /// The name of a class with its module and the types around it, as `String(reflecting:)` gives it.
    ///
    /// `String(reflecting:)` and `String(describing:)` first look for conformances to several protocols, which the
    /// runtime searches in all conformances of the process: half a millisecond for each class.
    package static func fullName(of type: NSManagedObject.Type) -> String { _typeName(type, qualified: true) }

    /// Removes a leading dot, which stands for the module of the model, as Xcode writes it.
    private static func withoutDot(_ className: String) -> String {
        className.hasPrefix(".") ? String(className.dropFirst()) : className
    }

    /// The module of the executable.
    private static let mainModule: String = {
        let name = Bundle.main.executableURL?.lastPathComponent ?? ""
        return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }()
}
